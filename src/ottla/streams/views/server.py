"""Questions about stores over HTTP: which path asks what, and how keys and values look as JSON.

    GET /stores                                         what there is, with positions and lag
    GET /stores/{store}/keys/{key}                      one entry
    GET /stores/{store}/range?from=&to=&limit=&after=   keys in the order of their bytes, both ends inclusive
    GET /stores/{store}/prefix/{prefix}                 string keys that begin so
    GET /stores/{store}/windows/{key}?from=&to=         windows by start, or sessions that touch the time between
    GET /stores/{store}/all?from=&to=                   everything, or all windows that begin between the two
    GET /health   GET /metrics   GET /status   GET /openapi.json

Times are milliseconds or ISO 8601. An answer with `next` has more: ask again with `after=` that.
"""

import asyncio
import base64
import binascii
import json
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla import __version__
from ottla.http import answers, media, openapi
from ottla.http.addresses import Address
from ottla.http.application import Application, Manners
from ottla.http.auth import OPEN_DOOR
from ottla.http.call import Call
from ottla.http.listening import Listening
from ottla.http.problems import Problem
from ottla.http.routes import Route
from ottla.http.threads import ThreadedServer
from ottla.model.permissions import DESCRIBE_CLUSTER, DESCRIBE_TOPIC, READ_TOPIC, Permission
from ottla.streams.run.config import ConfigError
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.views.lookups import LIMIT, Entries, Found, NoSuchStore, QueryableStore, QueryableStores, WrongStore
from ottla.streams.views.prometheus import metrics_text
from ottla.streams.views.queries import Position
from ottla.streams.views.view import LEAST, MOST, Place

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp
    from ottla.streams.run.running import Metric, Running
    from ottla.streams.views.doors import QueryDoor

HIGHEST_LIMIT: Final = 10_000
LONGEST_WAIT_MS: Final = 60_000
_PLACE: Final = struct.Struct(">qqi")
_LONGEST_TIME: Final = 18
"""Digits of milliseconds that certainly fit in 64 bits."""


@contextmanager
def serving(app: "StreamsApp", runner: "Running | None" = None, folder: Path | None = None) -> Iterator[str]:
    """Follows the changelogs and answers at `application.server`; gives the URL. Views are kept in the folder; who runs
    the application, and so holds its own folder, keeps them there. Raises OSError when the port is taken."""
    directory = StateDirectory.of(app)
    if runner is not None and directory.is_local:
        folder = directory.views
    host, _, port = app.config["application.server"].rpartition(":")
    with QueryableStores(app, folder) as stores:
        server = ViewServer(app, stores, host=host.strip("[]"), port=int(port), runner=runner)
        url = server.start()
        try:
            yield url
        finally:
            server.stop()


class ViewServer:
    """Serves the stores of an application, and what its runner tells, when there is one."""

    def __init__(
        self,
        app: "StreamsApp",
        stores: QueryableStores,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        runner: "Running | None" = None,
    ) -> None:
        """Raises ConfigError for a file that says what cannot be."""
        self._app = app
        self._stores = stores
        self._runner = runner
        self._door: QueryDoor | None = None
        file = app.config["application.server.settings.file"]
        self._server = (
            self._guarded(host, port, Path(file))
            if file
            else ThreadedServer(Listening(Address("http", host, port), self._application))
        )

    def _guarded(self, host: str, port: int, file: Path) -> ThreadedServer:
        from ottla.streams.views.doors import Safety  # noqa: PLC0415  for who has one

        try:
            safety = Safety(file, self._app.config.reach("admin"), self._topic_of)
        except ValueError as error:
            raise ConfigError(f"application.server.settings.file: {file}: {error}") from error
        self._door = safety.door
        tls = None if safety.tls is None else safety.tls.server()
        address = Address("http" if tls is None else "https", host, port)
        return ThreadedServer(Listening(address, self._application, tls=tls), safety.alongside)

    def _topic_of(self, store: str) -> str | None:
        return self._stores[store].topic if store in self._stores else None

    def start(self) -> str:
        """Its URL. Raises OSError when the port is taken."""
        return str(self._server.start())

    def stop(self) -> None:
        self._server.stop()

    def _application(self, address: Address) -> Application:
        bounds = {
            "bound": "TOPIC:PARTITION:OFFSET,…: what has to be in the answer",
            "wait_ms": "how long to wait for that; at once without it",
            "partition": "of this partition only",
            "format": "text, hex or base64",
        }
        said = {
            "limit": f"up to {HIGHEST_LIMIT}",
            "after": "the `next` of an answer",
            "reverse": "true: from the other end",
            **bounds,
        }
        spans = {"from": "where to begin", "to": "where to end", **said}
        dated = {"as_of": "a time: what a versioned store had then", **bounds}
        between = {"from": "where to begin", "to": "where to end", "reverse": "true: the newest first", **bounds}
        routes = (
            Route("GET", "/stores", _answered(self._listed), "What there is, with positions and lag"),
            Route("GET", "/stores/{store}", _answered(self._shown_store), "One store, with positions and lag"),
            Route("GET", "/stores/{store}/keys/{key}", _answered(self._one), "One entry", query=dated),
            Route("GET", "/stores/{store}/range", _answered(self._range), "Keys in order", query=spans),
            Route("GET", "/stores/{store}/prefix/{prefix}", _answered(self._prefix), "Keys that begin so", query=said),
            Route("GET", "/stores/{store}/windows/{key}", _answered(self._windows), "Windows of a key", query=spans),
            Route("GET", "/stores/{store}/sessions/{key}", _answered(self._windows), "Sessions of a key", query=spans),
            Route("GET", "/stores/{store}/versions/{key}", _answered(self._versions), "Versions", query=between),
            Route("GET", "/stores/{store}/all", _answered(self._all), "All entries", query=spans),
            Route("GET", "/health", _answered(self._health), "Whether results are fresh"),
            Route("GET", "/metrics", _answered(self._metrics_text), "Metrics for Prometheus"),
            Route("GET", "/status", _answered(self._status), "What the application does"),
        )
        guarded = [replace(each, needs=_needs(each.path)) for each in routes]
        told = openapi.described(self._app.application_id, __version__, guarded, _MEDIA, _PROBLEM)
        manners = Manners(media=_MEDIA, problem_body=_problem_body, doorkeeper=self._door or OPEN_DOOR)
        return Application(told, address, manners)

    # ---- stores

    def _listed(self, call: Call) -> answers.Answer:
        overview = self._overview()
        door = self._door
        if door is not None:
            overview["stores"] = [each for each in overview["stores"] if door.sees(call.caller, each["changelog"])]
        return _json(overview)

    def _shown_store(self, call: Call) -> answers.Answer:
        return _json(self._store(self._stores[call.path["store"]]))

    def _one(self, call: Call) -> answers.Answer:
        store, key = self._asked(call), call.path["key"]
        as_of = _time(call.query, "as_of", MOST)
        found = store.get(_key(store, key, call.query), None if as_of == MOST else as_of)
        if found is None:
            raise Problem(404, f"{store.spec.name} has no key {key}")
        return _json({"store": store.spec.name, **_shown(found), "position": self._position(store)})

    def _range(self, call: Call) -> answers.Answer:
        store, query = self._asked(call), call.query
        first, last = (_key(store, query[end], query) if query.get(end) else None for end in ("from", "to"))
        return self._page(store, store.range(first, last, **_paging(call)))

    def _prefix(self, call: Call) -> answers.Answer:
        store = self._asked(call)
        return self._page(store, store.prefix(_raw(call.path["prefix"], call.query), **_paging(call)))

    def _windows(self, call: Call) -> answers.Answer:
        store, query = self._asked(call), call.query
        span = _time(query, "from", LEAST), _time(query, "to", MOST)
        return self._page(store, store.fetch(_key(store, call.path["key"], query), *span, **_paging(call)))

    def _all(self, call: Call) -> answers.Answer:
        store, query = self._asked(call), call.query
        if not query.get("from") and not query.get("to"):
            return self._page(store, store.all(**_paging(call)))
        span = _time(query, "from", LEAST), _time(query, "to", MOST)
        return self._page(store, store.fetch_all(*span, **_paging(call)))

    def _versions(self, call: Call) -> answers.Answer:
        store, query = self._asked(call), call.query
        span = _time(query, "from", LEAST), _time(query, "to", MOST)
        found = store.versions(_key(store, call.path["key"], query), *span)
        shown = [each._asdict() for each in (reversed(found) if _truth_of(query, "reverse") else found)]
        return _json({"store": store.spec.name, "versions": shown, "position": self._position(store)})

    def _asked(self, call: Call) -> QueryableStore:
        """The store, once it is where the question wants it to be. Raises Problem if it is not, or not in time."""
        store = self._stores[call.path["store"]]
        bound = _bound(call.query)
        wait_ms = call.number("wait_ms", 0, least=0, most=LONGEST_WAIT_MS)
        if not self._stores.wait_for(store, bound, wait_ms / 1000):
            raise Problem(409, f"{store.spec.name} is not up to the bound yet, but at {self._position(store)}")
        return store

    def _position(self, store: QueryableStore) -> dict[str, dict[str, int]]:
        position = self._stores.position(store).components
        return {topic: {str(number): offset for number, offset in each.items()} for topic, each in position.items()}

    def _page(self, store: QueryableStore, found: Entries) -> answers.Answer:
        after = None if found.after is None else _cursor(found.after)
        entries = [_shown(each) for each in found.entries]
        return _json({"store": store.spec.name, "entries": entries, "next": after, "position": self._position(store)})

    def _overview(self) -> dict[str, Any]:
        return {
            "application_id": self._app.application_id,
            "caught_up": self._stores.follower.caught_up,
            "stores": [self._store(store) for store in self._stores.values()],
        }

    def _store(self, store: QueryableStore) -> dict[str, Any]:
        return {
            "name": store.spec.name,
            "kind": store.spec.kind.value,
            "changelog": store.topic,
            "partitions": [
                {"partition": each.partition, "position": each.position, "end": each.end, "lag": each.lag}
                for each in self._stores.progress(store)
            ],
        }

    # ---- the application

    def _health(self, call: Call) -> answers.Answer:
        """Ready when the queries run, if this process has them, and the views are where the changelogs are."""
        state = self._runner.state if self._runner is not None else None
        caught_up = self._stores.follower.caught_up
        well = caught_up and state in (None, "RUNNING")
        body = {
            "status": "up" if well else "down",
            "state": state,
            "stores": "caught up" if caught_up else self._stores.follower.trouble or "restoring",
        }
        return _json(body, HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE)

    def _status(self, call: Call) -> answers.Answer:
        running = self._runner.status() if self._runner is not None else {}
        told = {name: value for name, value in running.items() if name != "application.id"}
        return _json({"application_id": self._app.application_id, **told, "stores": self._overview()["stores"]})

    def _metrics_text(self, call: Call) -> answers.Answer:
        text = metrics_text(self._app.application_id, self._metrics())
        return answers.Answer(text.encode(), media_type=media.PROMETHEUS)

    def _metrics(self) -> "list[Metric]":
        from ottla.streams.run.running import Metric  # noqa: PLC0415  the app is loaded long before anybody asks

        found = list(self._runner.metrics()) if self._runner is not None else []
        for store in self._stores.values():
            lags = [each.lag for each in self._stores.progress(store)]
            if lags and None not in lags:
                # Kafka Streams' own name for how far a store is behind its changelog (4.3).
                tags = {"store-id": store.spec.name}
                lag = float(sum(each for each in lags if each is not None))
                found.append(Metric("stream-state-metrics", "changelog-lag", lag, tags, "Records not in the view yet."))
        return found


# ---- from words to keys and times


def _key(store: QueryableStore, text: str, query: Mapping[str, str]) -> Any:
    """A key as its serde has it, out of the text of a URL."""
    if query.get("format") in ("hex", "base64"):
        return store.key_of(_raw(text, query))
    read = _READINGS.get(store.key_serde.type.name, _json_or_text)
    try:
        key = read(text)
        store.key_bytes(key)
    except (ValueError, TypeError, KeyError):
        raise Problem(400, f"{text!r} cannot be a key of {store.spec.name}: {store.key_serde!r}") from None
    return key


def _json_or_text(text: str) -> Any:
    """A key that is JSON may be written as JSON; a bare word is a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text]


_READINGS: Final[Mapping[str, Callable[[str], Any]]] = {
    "string": str,
    "int": int,
    "long": int,
    "double": float,
    "boolean": _truth,
    "binary": str.encode,
}
"""By the type of the key's serde."""


def _raw(text: str, query: Mapping[str, str]) -> bytes:
    """`format=hex` and `format=base64` give the key's bytes themselves."""
    form = query.get("format", "text")
    try:
        if form == "hex":
            return bytes.fromhex(text)
        if form == "base64":
            return base64.urlsafe_b64decode(text)
    except (ValueError, binascii.Error):
        raise Problem(400, f"{text!r} is not {form}") from None
    if form != "text":
        raise Problem(400, f"format={form}: choose one of text, hex, base64")
    return text.encode()


def _time(query: Mapping[str, str], name: str, otherwise: int) -> int:
    text = query.get(name, "")
    if not text:
        return otherwise
    if text.removeprefix("-").isdecimal() and len(text) <= _LONGEST_TIME:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Problem(400, f"{name}={text}: milliseconds or a time such as 2026-11-01T12:00:00Z is expected") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def _paging(call: Call) -> dict[str, Any]:
    after = call.query.get("after")
    limit = call.number("limit", LIMIT, least=1, most=HIGHEST_LIMIT)
    return {
        "limit": limit,
        "after": _place(after) if after else None,
        "reverse": _truth_of(call.query, "reverse"),
        "partition": call.number("partition", 0, least=0, most=0x7FFF_FFFF) if call.query.get("partition") else None,
    }


def _truth_of(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise Problem(400, f"{name}={text}: true or false is expected")
    return text == "true"


def _bound(query: Mapping[str, str]) -> Position:
    bound = Position()
    for text in query.get("bound", "").split(",") if query.get("bound") else ():
        topic, _, rest = text.rpartition(":")
        topic, _, partition = topic.rpartition(":")
        if not topic or not partition.isdecimal() or not rest.isdecimal():
            raise Problem(400, f"bound={text}: TOPIC:PARTITION:OFFSET is expected")
        bound = bound.with_component(topic, int(partition), int(rest))
    return bound


def _place(cursor: str) -> Place:
    try:
        data = base64.urlsafe_b64decode(cursor)
        first, second, partition = _PLACE.unpack_from(data, 0)
    except (ValueError, struct.error):
        raise Problem(400, f"after={cursor}: the `next` of an answer is expected") from None
    return Place(data[_PLACE.size :], first, second, partition)


def _cursor(place: Place) -> str:
    return base64.urlsafe_b64encode(_PLACE.pack(place.first, place.second, place.partition) + place.key).decode()


# ---- from entries to JSON


def _shown(found: Found) -> dict[str, Any]:
    shown = {"key": found.key, "value": found.value, "timestamp": found.timestamp}
    if found.window is not None:
        shown["window"] = {"start": found.window.start, "end": found.window.end}
    return shown


def _json(document: Any, status: HTTPStatus = HTTPStatus.OK) -> answers.Answer:
    return answers.Answer(json.dumps(document, default=_plain, ensure_ascii=False).encode(), status)


def _plain(value: Any) -> Any:
    """What JSON has no form for."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return str(value)


def _problem_body(problem: Problem) -> Any:
    return {"error": HTTPStatus(problem.status).phrase.lower().replace(" ", "_"), "message": problem.message}


_PROBLEM: Final = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
    "required": ["error", "message"],
}
_MEDIA: Final = media.Media(offered=(media.JSON,), problems=media.JSON)


def _needs(path: str) -> Permission | None:
    """What is asked of the topic that keeps a store, or of the cluster where it is about all of them."""
    if path.startswith("/stores/{store}/"):
        return READ_TOPIC
    if path == "/stores/{store}":
        return DESCRIBE_TOPIC
    return DESCRIBE_CLUSTER if path in ("/metrics", "/status") else None


def _answered(answer: Callable[[Call], answers.Answer]) -> Callable[[Call], Awaitable[answers.Answer]]:
    """A function that looks something up, as the coroutine of a route."""

    async def route(call: Call) -> answers.Answer:
        try:
            # Whoever waits must not hold up the others.
            return await asyncio.to_thread(answer, call) if call.query.get("wait_ms") else answer(call)
        except NoSuchStore as error:
            raise Problem(404, str(error)) from error
        except WrongStore as error:
            raise Problem(400, str(error)) from error
        except Problem:
            raise
        except Exception as error:
            # A serde of the user's is part of this: whatever it raises belongs into an answer.
            raise Problem(500, f"{type(error).__name__}: {error}") from error

    return route
