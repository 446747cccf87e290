"""A blocking client of a schema registry, ours or Confluent's: what pipelines read and write schemas with.

Ids and GUIDs stand for the same schema forever, so answers about them are kept; that there is no such schema is kept
for some seconds, since a topic full of rubbish would ask for thousands of ids. It may be pickled: it takes its settings
along, not its connections. One thread asks at a time.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from ottla.registry.line import Line, TooMuch, basic
from ottla.registry.lookup import Registered, RegistryUnavailable, UnknownSchema
from ottla.registry.schemas.base import LanguageName, Reference, Resolved

T = TypeVar("T")

TIMEOUT_S: Final = 10.0
"""For one request; and for all attempts of it together."""
PAUSE_S: Final = 0.2
"""Between attempts, when every address was tried."""
MISSED_S: Final = 10.0
"""So long it is believed that there is no schema of an id."""
MOST_KEPT: Final = 10_000
MOST_BYTES: Final = 64 << 20
"""Of an answer."""
MOST_REFERENCES: Final = 1_000
"""That a schema may have, directly or not."""
_TRY_ELSEWHERE: Final = frozenset((408, 429, 502, 503, 504))


class RegistryRefused(UnknownSchema):
    """The registry's own words and code, such as 40403 or 40901."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} (error code {code})")
        self.code = code


@dataclass(frozen=True, slots=True)
class _Settings:
    urls: tuple[str, ...]
    user: str
    password: str = field(repr=False)
    token: str = field(repr=False)
    ca_file: str
    context: str
    timeout_s: float


class RegistryClient:
    """`RegistryClient("http://127.0.0.1:8081")`; several addresses are tried in turn."""

    def __init__(
        self,
        *urls: str,
        user: str = "",
        password: str = "",
        token: str = "",
        ca_file: str = "",
        context: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`token`: of a bearer. `ca_file`: whose certificates are believed, for https. `context`: in which subjects and
        ids are meant, as in `:.context:subject`."""
        if not urls:
            raise ValueError("the address of a schema registry is missing: http://host:port or https://host:port")
        addresses = tuple(url.rstrip("/") for url in urls)
        self._settings = _Settings(addresses, user, password, token, ca_file, context.strip(":"), timeout_s)
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        settings = self._settings
        shown = f"Bearer {settings.token}" if settings.token else ""
        if not shown and settings.user:
            shown = basic(settings.user, settings.password)
        self._lines = [
            Line(url, shown, settings.ca_file or None, settings.timeout_s, MOST_BYTES) for url in settings.urls
        ]
        self._kept: dict[object, Registered] = {}
        self._missed: dict[object, tuple[float, UnknownSchema]] = {}

    def __getstate__(self) -> _Settings:
        return self._settings

    def __setstate__(self, settings: _Settings) -> None:
        self._settings = settings
        self._begin()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegistryClient) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(self._settings)

    def __repr__(self) -> str:
        return f"RegistryClient({', '.join(map(repr, self._settings.urls))})"

    def close(self) -> None:
        with self._lock:
            for line in self._lines:
                line.close()

    # ---- schemas

    def by_id(self, schema_id: int) -> Registered:
        return self._once(schema_id, lambda: self._registered(self._by_id(schema_id), schema_id))

    def by_guid(self, guid: str) -> Registered:
        return self._once(guid, lambda: self._registered(self._get(f"/schemas/guids/{quote(guid, safe='')}"), 0))

    def latest(self, subject: str) -> Registered:
        return self._registered(self._get(f"/subjects/{self._subject(subject)}/versions/latest"))

    def register(
        self, subject: str, language: LanguageName, text: str, references: Sequence[Reference] = ()
    ) -> Registered:
        return self._sent(f"/subjects/{self._subject(subject)}/versions", language, text, references)

    def find(self, subject: str, language: LanguageName, text: str, references: Sequence[Reference] = ()) -> Registered:
        return self._sent(f"/subjects/{self._subject(subject)}", language, text, references)

    def _sent(self, path: str, language: LanguageName, text: str, references: Sequence[Reference]) -> Registered:
        body: dict[str, Any] = {"schema": text, "schemaType": language}
        if references:
            body["references"] = [
                {"name": each.name, "subject": each.subject, "version": each.version} for each in references
            ]

        def ask() -> Registered:
            answer = self._asked("POST", path, body)
            if "guid" not in answer:  # registries before 8.0 give the id alone
                answer = {**self._by_id(answer["id"]), **answer}
            return self._registered({"schema": text, "schemaType": language, **answer})

        return self._once((path, language, text, tuple(references)), ask)

    def _by_id(self, schema_id: int) -> dict[str, Any]:
        context = self._settings.context
        return self._get(
            f"/schemas/ids/{schema_id}" + (f"?{urlencode({'subject': f':{context}:'})}" if context else "")
        )

    def _subject(self, subject: str) -> str:
        context = self._settings.context
        return quote(f":{context}:{subject}" if context else subject, safe="")

    def _registered(self, answer: dict[str, Any], schema_id: int | None = None) -> Registered:
        return Registered(
            answer.get("id", 0) if schema_id is None else schema_id,
            answer.get("guid", ""),
            answer.get("schemaType", "AVRO"),
            answer["schema"],
            tuple(references := _references(answer)),
            self.resolve(references),
        )

    def resolve(self, references: Sequence[Reference]) -> tuple[Resolved, ...]:
        """A stack and not a recursion: how deep references go is the registry's matter."""
        found: dict[tuple[str, int], Resolved] = {}
        left = [(reference, False) for reference in reversed(references)]
        texts: dict[tuple[str, int], dict[str, Any]] = {}
        while left:
            reference, inside_known = left.pop()
            key = reference.subject, reference.version
            if inside_known:
                found.setdefault(key, Resolved(reference, texts[key]["schema"]))
            elif key not in texts:
                if len(texts) >= MOST_REFERENCES:
                    raise UnknownSchema(f"a schema refers to more than {MOST_REFERENCES} others")
                # Deleted ones too: what was written with them is still there.
                path = f"/subjects/{self._subject(reference.subject)}/versions/{reference.version}?deleted=true"
                texts[key] = self._get(path)
                left.append((reference, True))
                left += [(inner, False) for inner in reversed(_references(texts[key]))]
        return tuple(found.values())

    def _once(self, key: object, ask: Callable[[], Registered]) -> Registered:
        known = self._kept.get(key)
        if known is not None:
            return known
        missed = self._missed.get(key)
        if missed is not None and time.monotonic() < missed[0]:
            raise missed[1]
        try:
            found = ask()
        except UnknownSchema as unknown:
            _make_room(self._missed)
            self._missed[key] = time.monotonic() + MISSED_S, unknown
            raise
        _make_room(self._kept)
        self._kept[key] = found
        return found

    # ---- HTTP

    def _get(self, path: str) -> dict[str, Any]:
        return self._asked("GET", path)

    def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Tries every address until one answers or time is up. A POST may arrive twice: registering twice is once."""
        end = time.monotonic() + self._settings.timeout_s
        data = None if body is None else json.dumps(body).encode()
        with self._lock:
            while True:
                for line in self._lines:
                    try:
                        status, answer = line.exchange(method, path, data)
                    except TooMuch as error:
                        raise UnknownSchema(str(error)) from None
                    except (OSError, http.client.HTTPException) as error:
                        why = f"{line}: {str(error) or type(error).__name__}"
                        continue
                    if status not in _TRY_ELSEWHERE:
                        return _told(str(line), status, answer)
                    why = f"{line} answers {status}"
                if time.monotonic() + PAUSE_S > end:
                    raise RegistryUnavailable(f"the schema registry cannot be asked: {why}")
                time.sleep(PAUSE_S)


def _told(url: str, status: int, answer: bytes) -> dict[str, Any]:
    try:
        found = json.loads(answer)
    except ValueError:
        found = None
    if status == http.client.OK and isinstance(found, dict):
        return found
    if isinstance(found, dict) and isinstance(found.get("error_code"), int):
        if status >= http.client.INTERNAL_SERVER_ERROR:
            raise RegistryUnavailable(f"{url} answers {status}: {found.get('message')}")
        raise RegistryRefused(found["error_code"], str(found.get("message")))
    if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        raise RegistryUnavailable(f"{url} answers {status}: user, password or token are not right for it")
    raise RegistryUnavailable(f"{url} answers {status}, and not as a schema registry does")


def _references(answer: dict[str, Any]) -> list[Reference]:
    return [Reference(each["name"], each["subject"], each["version"]) for each in answer.get("references") or ()]


def _make_room(kept: dict[object, T]) -> None:
    """The oldest go."""
    while len(kept) >= MOST_KEPT:
        kept.pop(next(iter(kept)), None)
