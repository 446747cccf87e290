"""What the broker asks of a schema registry, over its REST API: the other side of `broker.validation.Schemas`.

Answers are remembered; what is asked while the same question is under way shares its answer. Payloads are decoded in a
thread: a batch of megabytes must not hold the loop.
"""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast
from urllib.parse import quote

import msgspec

from ottla.broker.validation import Incapable, PartName, Undecided
from ottla.http.asking import NoAnswer, ask
from ottla.model.extras import missing
from ottla.model.ports import Clock
from ottla.model.properties import Settings
from ottla.node.schema_payloads import Text, decoder, record_names
from ottla.registry.schemas.base import Reference, Resolved

if TYPE_CHECKING:
    from ssl import SSLContext

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")

_CONNECT_S: Final = 2.0
_ANSWER_S: Final = 10.0
_AT_ONCE: Final = 8
"""Requests to the registry under way."""
_MOST_REFERENCES: Final = 1_000
_HEADERS: Final = {"accept": "application/vnd.schemaregistry.v1+json"}
_MISSING: Final = 404


@dataclass(slots=True)
class Known:
    subjects: frozenset[str]
    """Empty: nobody knows the schema."""
    schema_id: int
    text: Text | None = None
    names: tuple[str, ...] = ()
    decode: Callable[[bytes], str] | None = None


class RegistrySchemas:
    __slots__ = (
        "_clock",
        "_headers",
        "_known",
        "_most",
        "_refused",
        "_settings",
        "_slots",
        "_tls",
        "_ttl_ms",
        "_under_way",
        "_url",
    )

    def __init__(self, settings: Settings, clock: Clock, url: Callable[[], str | None]) -> None:
        self._clock = clock
        self._url = url
        self._settings = settings
        self._tls: SSLContext | None = None
        """Made when it is first needed, and again after a question without an answer: stores are renewed."""
        self._headers = _HEADERS | _authorization(settings)
        self._most = settings.get_int("confluent.schema.registry.max.cache.size")
        self._ttl_ms = settings.get_int("confluent.missing.id.cache.ttl.sec") * 1_000
        self._known: OrderedDict[bytes, Known] = OrderedDict()
        self._refused: OrderedDict[tuple[bytes, str, str, str], tuple[int, str]] = OrderedDict()
        """When, and why."""
        self._under_way: dict[bytes, asyncio.Task[Known]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    # ---- the port

    async def objection(self, topic: str, part: PartName, strategy: str, mark: bytes) -> str:
        """What is said against a schema holds for a while, for this topic: another may be the next to register it."""
        known = self._known.get(mark)
        if known is not None and not known.subjects.isdisjoint(await self._subjects(known, topic, part, strategy)):
            return ""
        question, now = (mark, topic, part, strategy), self._clock.monotonic()
        told = self._refused.get(question)
        if told is not None and now - told[0] < self._ttl_ms:
            return told[1]
        known = await self._ask_once(mark)
        wanted = await self._subjects(known, topic, part, strategy)
        if not known.subjects.isdisjoint(wanted):
            return ""
        objection = _objection(mark, known, wanted)
        _remember(self._refused, question, (now, objection), self._most)
        return objection

    async def objections(self, mark: bytes, payloads: Sequence[bytes]) -> list[str]:
        known = self._known.get(mark) or await self._ask_once(mark)
        if known.decode is None:
            text = await self._text(known)
            known.decode = await _with_library(decoder, text, await self._resolved(text))
        return await asyncio.to_thread(lambda decode: list(map(decode, payloads)), known.decode)

    # ---- asking

    async def _ask_once(self, mark: bytes) -> Known:
        task = self._under_way.get(mark)
        if task is None:
            task = self._under_way[mark] = asyncio.create_task(self._ask(mark))
            task.add_done_callback(partial(self._answered, mark))
        return await asyncio.shield(task)

    def _answered(self, mark: bytes, task: asyncio.Task[Known]) -> None:
        del self._under_way[mark]
        if task.cancelled() or task.exception() is not None:
            return
        _remember(self._known, mark, task.result(), self._most)

    async def _ask(self, mark: bytes) -> Known:
        schema_id = await self._id(mark)
        if schema_id is None:
            return Known(frozenset(), -1)
        subjects = await self._get(f"/schemas/ids/{schema_id}/subjects")
        return Known(frozenset(cast("list[str]", subjects or [])), schema_id)

    async def _id(self, mark: bytes) -> int | None:
        if mark[0] == 0:
            return int.from_bytes(mark[1:], "big", signed=True)
        guid = mark[1:].hex()
        parts = "-".join((guid[:8], guid[8:12], guid[12:16], guid[16:20], guid[20:]))
        found = cast("list[dict[str, object]]", await self._get(f"/schemas/guids/{parts}/ids") or [])
        return next((cast(int, each["id"]) for each in found if each.get("context", ".") == "."), None)

    async def _subjects(self, known: Known, topic: str, part: PartName, strategy: str) -> tuple[str, ...]:
        """Under one of which it has to be registered."""
        if strategy == "TopicNameStrategy" or not known.subjects:
            return (f"{topic}-{part}",)
        if not known.names:
            known.names = await _with_library(record_names, await self._text(known))
        return known.names if strategy == "RecordNameStrategy" else tuple(f"{topic}-{name}" for name in known.names)

    async def _text(self, known: Known) -> Text:
        if known.text is None:
            found = await self._get(f"/schemas/ids/{known.schema_id}")
            if found is None:
                raise Undecided(f"the schema {known.schema_id} has gone from the registry")
            known.text = _text_of(cast("dict[str, object]", found))
        return known.text

    async def _resolved(self, text: Text) -> list[Resolved]:
        """All that it refers to, each before whoever refers to it."""
        found: dict[Reference, Resolved] = {}
        seen: set[Reference] = set()
        waiting: list[tuple[Reference, Text | None]] = [(each, None) for each in reversed(text.references)]
        while waiting:
            reference, read = waiting.pop()
            if read is not None:
                found[reference] = Resolved(reference, read.text)
            elif reference not in seen:
                seen.add(reference)
                if len(seen) > _MOST_REFERENCES:
                    raise Undecided(f"a schema refers to more than {_MOST_REFERENCES} others")
                other = await self._referred(reference)
                waiting.append((reference, other))
                waiting += [(each, None) for each in reversed(other.references)]
        return list(found.values())

    async def _referred(self, to: Reference) -> Text:
        reply = await self._get(f"/subjects/{quote(to.subject, safe='')}/versions/{to.version}?deleted=true")
        if reply is None:
            raise Undecided(f"the registry has no version {to.version} of {to.subject}, which a schema refers to")
        return _text_of(cast("dict[str, object]", reply))

    async def _get(self, target: str) -> object | None:
        """None: there is no such thing. Raises Undecided."""
        url = self._url()
        if url is None:
            raise Undecided("no schema registry is known to this broker: set confluent.schema.registry.url")
        async with self._slots:
            try:
                tls = self._context(url)
                reply = await ask(url, "GET", target, self._headers, connect_s=_CONNECT_S, answer_s=_ANSWER_S, tls=tls)
            except NoAnswer as error:
                self._tls = None
                raise Undecided(f"the schema registry cannot be asked: {error}") from None
        if reply.status == _MISSING:
            return None
        if reply.status != 200:
            raise Undecided(f"the schema registry at {url} answers {reply.status} to {target}")
        try:
            return cast(object, msgspec.json.decode(reply.body))
        except msgspec.DecodeError as error:
            raise Undecided(f"the schema registry at {url} answers no JSON to {target}: {error}") from None

    def _context(self, url: str) -> "SSLContext | None":
        """Trusts as the node does (ssl.truststore.*), as the registry beside it shows the same certificate. Raises
        Undecided."""
        if self._tls is None and url.startswith("https:"):
            from ottla.net.tls import client_context, material  # noqa: PLC0415  for who has TLS
            from ottla.security.tls.settings import tls_settings  # noqa: PLC0415

            try:
                self._tls = client_context(material(tls_settings(self._settings.__getitem__)))
            except ValueError as error:
                raise Undecided(f"the schema registry cannot be asked over TLS: {error}") from None
        return self._tls


async def _with_library(work: Callable[P, V], *arguments: P.args, **named: P.kwargs) -> V:
    """In a thread: the library of a language is loaded by its first schema. Raises Incapable."""
    try:
        return await asyncio.to_thread(work, *arguments, **named)
    except ModuleNotFoundError as error:
        raise Incapable(f"the broker cannot read schemas of this type: {missing(error)}") from None


def _authorization(settings: Settings) -> dict[str, str]:
    user_and_password = settings["confluent.basic.auth.user.info"]
    if not user_and_password:
        return {}
    return {"authorization": f"Basic {base64.b64encode(str(user_and_password).encode()).decode()}"}


def _remember(what: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    what[key] = value
    what.move_to_end(key)
    if len(what) > most:
        what.popitem(last=False)


def _text_of(reply: dict[str, object]) -> Text:
    references = cast("list[dict[str, object]]", reply.get("references") or [])
    return Text(
        str(reply.get("schemaType") or "AVRO"),
        str(reply.get("schema")),
        tuple(Reference(str(each["name"]), str(each["subject"]), cast(int, each["version"])) for each in references),
    )


def _objection(mark: bytes, known: Known, wanted: tuple[str, ...]) -> str:
    name = f"the schema id {int.from_bytes(mark[1:], 'big', signed=True)}" if mark[0] == 0 else mark[1:].hex()
    if not known.subjects:
        return f"{name} is not known to the schema registry"
    return f"{name} is not registered under the subject {' or '.join(wanted)}"
