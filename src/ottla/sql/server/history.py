"""SELECT over history, for clients: understood here, computed in the Spark host, followed line by line.

The host writes its answer into a file of the server's folder, which is read while it grows, so that rows go out as they
are found and neither process holds them all.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

from ottla.client.reach import Reach
from ottla.model.permissions import READ_TOPIC
from ottla.pipelines.door import HostClient, HostGone, Refused
from ottla.serdes.types import Type
from ottla.sql import tree as t
from ottla.sql.catalog import Catalog
from ottla.sql.errors import BAD_STATEMENT, SERVER_ERROR, SqlError
from ottla.sql.history.text import read
from ottla.sql.history.types import of_json
from ottla.sql.model import Columns
from ottla.sql.server.askers import Asker
from ottla.sql.server.log import Logged
from ottla.sql.server.looking import Looking

ENTRY: Final = "ottla.sql.history.job:start"
_GLANCE_S: Final = 0.05
_STATE_EVERY: Final = 10
"""Glances at the answer between two at the job: it may have died without an answer."""
_SLICE_LINES: Final = 1_000
Statements = Sequence[tuple[int, Logged]]


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    rows: int = 100_000
    """Of one answer."""
    seconds: float = 600.0
    at_once: int = 4


class HistoryHost:
    """The Spark host, as far as history goes. Its methods block: they are called beside the loop."""

    def __init__(
        self,
        client: Callable[[], HostClient],
        *,
        service_id: str,
        reach: Reach,
        folder: Path,
        registry: Mapping[str, str],
        defaults: Mapping[str, str],
    ) -> None:
        self._client = client
        self._service_id = service_id
        self._folder = folder
        self._around = {
            "bootstrap": reach.servers,
            "settings_file": reach.settings_file,
            "registry": dict(registry),
        }
        self._defaults = defaults

    def ask(self, text: str, statements: Statements, topics: Mapping[str, str], rows: int) -> "Asked":
        """Raises SqlError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = secrets.token_hex(8)
        asked = Asked(
            f"{self._service_id}.history.{name}",
            self._folder / f"{name}.question",
            self._folder / f"{name}.rows",
            self._client,
        )
        listed = [[offset, each.text, {**self._defaults, **each.properties}] for offset, each in statements]
        question = {**self._around, "text": text, "statements": listed, "topics": dict(topics), "rows": rows}
        asked.question.write_text(json.dumps(question), encoding="utf-8")
        asked.answer.touch(mode=0o600)
        asked.start()
        return asked


@dataclass(slots=True)
class Asked:
    """A question to the host, until it is closed."""

    job: str
    question: Path
    answer: Path
    client: Callable[[], HostClient]
    file: TextIO | None = None
    begun: str = ""
    """A line that is not whole yet."""
    glances: int = 0

    def start(self) -> None:
        """Raises SqlError."""
        self.file = self.answer.open(encoding="utf-8")
        arguments = {"asked": str(self.question), "answer": str(self.answer)}
        try:
            with self.client() as client:
                client.start(self.job, ENTRY, arguments, keep=False)
        except (HostGone, Refused) as error:
            self.close()
            why = f"SQL over history runs on Spark, whose host does not run: {error}"
            raise SqlError(SERVER_ERROR, why) from None

    def lines(self) -> list[str]:
        """Whole ones that are there; waits a little if there are none. Raises SqlError when none will come."""
        assert self.file is not None
        found: list[str] = []
        while len(found) < _SLICE_LINES and (part := self.file.readline()):
            self.begun += part
            if part.endswith("\n"):
                found.append(self.begun)
                self.begun = ""
        if not found:
            self.glances += 1
            if self.glances % _STATE_EVERY == 0:
                self._check()
            time.sleep(_GLANCE_S)
        return found

    def _check(self) -> None:
        try:
            with self.client() as client:
                found = client.status().get(self.job)
        except HostGone as error:
            raise SqlError(SERVER_ERROR, f"{error}: ask again") from None
        if found is None or found["state"] == "FAILED":
            why = "it was started anew" if found is None else found["reason"]
            raise SqlError(SERVER_ERROR, f"the Spark host gave no answer: {why}")

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            with suppress(HostGone, Refused), self.client() as client:
                client.stop(self.job)
        for path in (self.question, self.answer):
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Answer:
    columns: Columns
    rows: AsyncIterator[list[list[Any]]]


class HistoryQueries:
    """On the loop."""

    def __init__(
        self, host: HistoryHost | None, catalog: Catalog, looking: Looking, limits: HistoryLimits | None = None
    ) -> None:
        self._host = host
        self._catalog = catalog
        self._looking = looking
        self._limits = limits or HistoryLimits()
        self._running = 0

    async def select(self, text: str, statements: Statements, asker: Asker) -> Answer:
        """Its columns are known when this returns. Raises SqlError, ClientError."""
        host = self._checked()
        topics = await self._topics(text, asker)
        self._running += 1
        rows = self._answer(host, text, statements, topics)
        try:
            head = await anext(rows)
        except BaseException:
            await rows.aclose()
            raise
        columns = tuple((name, of_json(kind)) for name, kind in head["columns"])
        return Answer(columns, rows)

    def _checked(self) -> HistoryHost:
        if self._host is None:
            raise SqlError(
                BAD_STATEMENT,
                "this server runs no SQL over history (sql.history.enabled, sql.state.dir): `ottla sql history` does",
            )
        if self._running >= self._limits.at_once:
            raise SqlError(
                BAD_STATEMENT,
                f"{self._running} SELECTs over history run, and no more may (sql.history.max.queries): ask again later",
            )
        return self._host

    async def _topics(self, text: str, asker: Asker) -> dict[str, str]:
        """Those that nobody declared, by the names that stand for them; the sender may read all. Raises SqlError,
        ClientError."""
        found: dict[str, str] = {}
        for each in read(text).reads:
            source = self._catalog.sources.get(each.name)
            if source is not None:
                asker.check(READ_TOPIC, source.topic)
                continue
            topic = await self._looking.named(t.Source(each.written), asker)
            if topic is not None:  # else a name of the query's own, or none at all, which Spark says
                asker.check(READ_TOPIC, topic)
                found[each.written] = topic
        return found

    async def _answer(
        self, host: HistoryHost, text: str, statements: Statements, topics: Mapping[str, str]
    ) -> AsyncGenerator[Any, None]:
        """The head, then rows, some at a time. Raises SqlError."""
        asked: Asked | None = None
        deadline = time.monotonic() + self._limits.seconds
        try:
            asked = await asyncio.to_thread(host.ask, text, statements, topics, self._limits.rows)
            sent = 0
            cells: Callable[[list[Any]], list[Any]] | None = None
            while True:
                rows: list[Any] = []
                for line in await asyncio.to_thread(asked.lines):
                    found = json.loads(line, parse_float=Decimal)
                    if isinstance(found, dict) and "columns" in found:
                        cells = _cells(found)
                        yield found
                    elif isinstance(found, dict):
                        if rows:
                            yield rows
                        self._ended(found, text)
                        return
                    else:
                        assert cells is not None
                        sent += 1
                        if sent > self._limits.rows:
                            self._refuse_more()
                        rows.append(cells(found))
                if rows:  # nothing comes before the head
                    yield rows
                if time.monotonic() > deadline:
                    self._refuse_late()
        finally:
            self._running -= 1
            if asked is not None:
                await asyncio.shield(asyncio.to_thread(asked.close))

    def _ended(self, found: Mapping[str, Any], text: str) -> None:
        wrong = found.get("error")
        if wrong is not None:
            place = wrong.get("line") or 0, wrong.get("column") or 0
            raise SqlError(wrong["code"], wrong["message"], "", *place).of(text)

    def _refuse_more(self) -> NoReturn:
        raise SqlError(
            BAD_STATEMENT,
            f"the answer has more than {self._limits.rows:,} rows, which is as many as it may (sql.history.max.rows): "
            "say LIMIT, or aggregate; `ottla sql history` has no such bound",
        )

    def _refuse_late(self) -> NoReturn:
        raise SqlError(
            SERVER_ERROR,
            f"it took more than {self._limits.seconds:g} s (sql.history.timeout.ms): bound what it reads by "
            "FROM topic BETWEEN ... AND ...",
        )


def _cells(head: Mapping[str, Any]) -> Callable[[list[Any]], list[Any]]:
    """Of a row: numbers with a point are read as decimals, and become what their columns say."""
    kinds = [of_json(kind) for _, kind in head["columns"]]
    return lambda row: [_of_kind(value, kind) for value, kind in zip(row, kinds, strict=True)]


def _of_kind(value: Any, kind: Type) -> Any:
    match kind.name:
        case "double" if isinstance(value, Decimal):
            return float(value)
        case "array" if value is not None and kind.element is not None:
            return [_of_kind(each, kind.element) for each in value]
        case "map" if value is not None and kind.element is not None:
            return {name: _of_kind(each, kind.element) for name, each in value.items()}
        case "struct" if value is not None:
            return {name: _of_kind(value[name], part) for name, part in kind.fields}
    return value
