"""Stores as a program asks them: deserialized keys and values, from the views that a follower keeps up to date.

with QueryableStores(app) as stores:
    stores.wait_until_caught_up(10)
    stores["counts"].get("hello")
"""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.serdes.base import Serde
from ottla.streams.serdes import Serdes
from ottla.streams.topology.graph import ProcessorNode, changelog_topic
from ottla.streams.topology.operations import StreamStreamJoin, Suppress
from ottla.streams.topology.stores import StoreKind, StoreSpec
from ottla.streams.views.follower import Follower, Progress
from ottla.streams.views.view import LEAST, MOST, Entry, Page, Place, View
from ottla.streams.windows import Window

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp

LIMIT: Final = 1000
"""Of entries in one answer, unless told otherwise."""


class Found(NamedTuple):
    """An entry of a store."""

    key: Any
    value: Any
    timestamp: int
    window: Window | None = None


class Entries(NamedTuple):
    """Some entries of a store, in the order of their key bytes, and where to go on: pass `after` for the next ones."""

    entries: tuple[Found, ...]
    after: Place | None


class WrongStore(TypeError):
    """The question does not fit the kind of the store."""


class NoSuchStore(KeyError):
    def __str__(self) -> str:
        return str(self.args[0])


class QueryableStore:
    """Reads only. Answers hold what was committed when they were given."""

    __slots__ = ("key_serde", "spec", "topic", "value_serde", "view")

    def __init__(self, spec: StoreSpec, topic: str, view: View, key_serde: Serde[Any], value_serde: Serde[Any]) -> None:
        self.spec = spec
        self.topic = topic
        self.view = view
        self.key_serde = key_serde
        self.value_serde = value_serde

    def get(self, key: Any) -> Found | None:
        self._needs(StoreKind.KEY_VALUE)
        entry = self.view.get(self._key(key))
        return None if entry is None else self._found(entry)

    def range(
        self, first: Any = None, last: Any = None, *, after: Place | None = None, limit: int = LIMIT
    ) -> Entries:  # fmt: skip
        """Both ends inclusive, in the order of serialized keys; None is open."""
        low = None if first is None else self._key(first)
        high = None if last is None else self._key(last)
        return self._answer(self.view.range(low, high, after=after, limit=limit))

    def prefix(self, prefix: bytes, *, after: Place | None = None, limit: int = LIMIT) -> Entries:
        """Of the serialized key."""
        return self._answer(self.view.prefix(prefix, after=after, limit=limit))

    def all(self, *, after: Place | None = None, limit: int = LIMIT) -> Entries:
        return self._answer(self.view.range(after=after, limit=limit))

    def fetch(
        self, key: Any, first: int = LEAST, last: int = MOST, *, after: Place | None = None, limit: int = LIMIT
    ) -> Entries:
        """Of a window store: the windows of a key that begin between two times, both inclusive. Of a session store: the
        sessions that end no earlier than the first and begin no later than the second."""
        if self.spec.kind is StoreKind.SESSION:
            return self._answer(self.view.sessions(self._key(key), first, last, after=after, limit=limit))
        self._needs(StoreKind.WINDOW)
        return self._answer(self.view.windows(self._key(key), first, last, after=after, limit=limit))

    def _needs(self, kind: StoreKind) -> None:
        if self.spec.kind is not kind:
            raise WrongStore(f"{self.spec.name} is a {self.spec.kind.value} store, not a {kind.value} store")

    def _key(self, key: Any) -> bytes:
        data = self.key_serde.serialize(key)
        if data is None:
            raise ValueError("a key is expected")
        return data

    def _answer(self, page: Page) -> Entries:
        entries = tuple(map(self._found, page.entries))
        return Entries(entries, page.entries[-1].place if page.more else None)

    def _found(self, entry: Entry) -> Found:
        place = entry.place
        key, value = self.key_serde.deserialize(place.key), self.value_serde.deserialize(entry.value)
        return Found(key, value, entry.timestamp, _window(self.spec, place))


def _window(spec: StoreSpec, place: Place) -> Window | None:
    if spec.kind is StoreKind.WINDOW:
        return Window(place.first, place.first + spec.window_size_ms)
    if spec.kind is StoreKind.SESSION:
        return Window(place.second, place.first)
    return None


class QueryableStores(Mapping[str, QueryableStore]):
    """All stores of an application that have a changelog. A context manager: follows while it is open."""

    def __init__(self, app: "StreamsApp", directory: Path | None = None) -> None:
        """`directory` keeps the views from one time to the next, and is for one process at a time. Without it they are
        temporary and made anew."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="ottla-views-")
            directory = Path(self._temporary.name)
        # Two tables of one topic share a view.
        self._views: dict[str, View] = {}
        self._stores: dict[str, QueryableStore] = {}
        for spec, topic in queryable(app):
            view = self._views.get(topic)
            if view is None:
                view = View(spec.name, spec.kind, directory / f"{spec.name}.sqlite", retention_ms=spec.retention_ms)
                self._views[topic] = view
            self._stores[spec.name] = QueryableStore(spec, topic, view, *_serdes(app, spec))
        client_id = f"{app.application_id}-queries"
        self.follower = Follower(app.config["bootstrap.servers"], self._views, client_id=client_id)

    def __enter__(self) -> "QueryableStores":
        self.follower.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.follower.stop()
        for view in self._views.values():
            view.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __getitem__(self, name: str) -> QueryableStore:
        store = self._stores.get(name)
        if store is None:
            there = ", ".join(self._stores) or "none: name one with Materialized.as_(...)"
            raise NoSuchStore(f"there is no store {name}; there are {there}")
        return store

    def __iter__(self) -> Iterator[str]:
        return iter(self._stores)

    def __len__(self) -> int:
        return len(self._stores)

    def wait_until_caught_up(self, timeout_s: float) -> bool:
        return self.follower.wait_until_caught_up(timeout_s)

    def progress(self, store: QueryableStore) -> list[Progress]:
        return self.follower.progress(store.topic)


def queryable(app: "StreamsApp") -> list[tuple[StoreSpec, str]]:
    """The stores that can be asked, each with the topic that feeds its view. Not the buffers of joins and of suppress:
    what lies in them is of use to their operators alone."""
    graph = app.graph
    private: set[str | None] = {spec.name for spec in graph.stores.values() if spec.retain_duplicates}
    for node in graph.nodes.values():
        match node:
            case (
                ProcessorNode(operation=Suppress(store=store))
                | ProcessorNode(operation=StreamStreamJoin(outer_store=store))
            ):
                private.add(store)
    found = [
        (spec, spec.source_topic or changelog_topic(app.application_id, spec.name))
        for spec in graph.stores.values()
        if (spec.logged or spec.source_topic) and spec.name not in private
    ]
    return found + [(table.store, table.topic) for table in graph.global_tables.values()]


def _serdes(app: "StreamsApp", spec: StoreSpec) -> tuple[Serde[Any], Serde[Any]]:
    key = spec.key_serde or app.config["default.key.serde"] or Serdes.bytes
    value = spec.value_serde or app.config["default.value.serde"] or Serdes.bytes
    return key, value
