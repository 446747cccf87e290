"""Stores as a program asks them: deserialized keys and values, from the views that a follower keeps up to date.

with QueryableStores(app) as stores:
    stores.wait_until_caught_up(10)
    stores["counts"].get("hello")
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, Unpack

from ottla.client.partitioner import partition_of_key
from ottla.serdes.base import Serde, Where, kept, placed, sees_place
from ottla.streams.run.topics import own_topics
from ottla.streams.serdes import Serdes
from ottla.streams.topology.graph import (
    Partitioner,
    ProcessorNode,
    SinkNode,
    SourceNode,
    SubTopology,
    changelog_topic,
    decorated,
)
from ottla.streams.topology.operations import StreamStreamJoin, StreamTableJoin, SubscriptionReceive, Suppress
from ottla.streams.topology.stores import StoreKind, StoreSpec, ValueAndTimestamp, VersionedRecord
from ottla.streams.views.follower import Follower, Progress
from ottla.streams.views.frames import frame_of
from ottla.streams.views.queries import (
    FailureReason,
    KeyQuery,
    KeyQueryMetadata,
    LagInfo,
    MultiVersionedKeyQuery,
    Position,
    PrefixQuery,
    Query,
    QueryResult,
    RangeQuery,
    ResultOrder,
    StateQueryRequest,
    StateQueryResult,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from ottla.streams.views.view import LEAST, MOST, Entry, Page, Place, Slice, View
from ottla.streams.windows import Window, Windowed

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


class Part(TypedDict, total=False):
    """Which part of an answer: behind which entry, how many, from the other end, of one partition only."""

    after: Place | None
    limit: int
    reverse: bool
    partition: int | None


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

    __slots__ = ("_has_changelog", "key_serde", "spec", "topic", "value_serde", "view")

    def __init__(
        self,
        spec: StoreSpec,
        topic: str,
        view: View,
        serdes: tuple[Serde[Any], Serde[Any]],
        *,
        has_changelog: bool = True,
    ) -> None:
        """Without a changelog the topic is that of a table: what lies there was written as records are."""
        self.spec = spec
        self.topic = topic
        self.view = view
        self.key_serde, self.value_serde = serdes
        self._has_changelog = has_changelog

    def key_bytes(self, key: Any) -> bytes:
        """As the topic has it. Raises whatever the serde raises."""
        serde = self.key_serde
        data = (kept(serde, self.topic) if self._has_changelog else placed(serde, Where(self.topic))).serialize(key)
        if data is None:
            raise ValueError("a key is expected")
        return data

    def key_of(self, data: bytes) -> Any:
        return placed(self.key_serde, Where(self.topic)).deserialize(data)

    def get(self, key: Any, as_of_ms: int | None = None) -> Found | None:
        """With a time: what a versioned store had then."""
        if as_of_ms is not None:
            self._needs(StoreKind.VERSIONED)
            versions = self.view.versions(self.key_bytes(key), as_of_ms, as_of_ms)
            return self._found(versions[-1].entry) if versions else None
        if self.spec.kind is not StoreKind.VERSIONED:
            self._needs(StoreKind.KEY_VALUE)
        entry = self.view.get(self.key_bytes(key))
        return None if entry is None else self._found(entry)

    def range(self, first: Any = None, last: Any = None, **part: Unpack[Part]) -> Entries:
        """Both ends inclusive, in the order of serialized keys; None is open."""
        low = None if first is None else self.key_bytes(first)
        high = None if last is None else self.key_bytes(last)
        return self._answer(self.view.range(low, high, Slice(**part)))

    def prefix(self, prefix: bytes, **part: Unpack[Part]) -> Entries:
        """Of the serialized key."""
        return self._answer(self.view.prefix(prefix, Slice(**part)))

    def all(self, **part: Unpack[Part]) -> Entries:
        return self.range(**part)

    def to_pandas(self, limit: int = 1000) -> Any:
        """A DataFrame: its first entries as they are now, a row each; what a notebook shows as a table."""
        return frame_of(self.all(limit=limit).entries)

    def fetch(self, key: Any, first: int = LEAST, last: int = MOST, **part: Unpack[Part]) -> Entries:
        """Of a window store: the windows of a key that begin between two times, both inclusive. Of a session store: the
        sessions that end no earlier than the first and begin no later than the second."""
        if self.spec.kind is StoreKind.SESSION:
            return self._answer(self.view.sessions(self.key_bytes(key), first, last, Slice(**part)))
        self._needs(StoreKind.WINDOW)
        return self._answer(self.view.windows(self.key_bytes(key), first, last, Slice(**part)))

    def fetch_all(self, first: int = LEAST, last: int = MOST, **part: Unpack[Part]) -> Entries:
        """As `fetch`, of all keys."""
        if self.spec.kind is StoreKind.SESSION:
            return self._answer(self.view.all_sessions(first, last, Slice(**part)))
        self._needs(StoreKind.WINDOW)
        return self._answer(self.view.all_windows(first, last, Slice(**part)))

    def versions(self, key: Any, first: int = LEAST, last: int = MOST) -> list[VersionedRecord]:
        """Of a versioned store: what was valid at some moment between the two times, the oldest first."""
        self._needs(StoreKind.VERSIONED)
        return self._versions(self.key_bytes(key), first, last, None)

    # ---- queries of version 2: one partition, and its own forms of results

    def ask(self, query: Query, partition: int) -> Any:
        """Raises WrongStore."""
        match query:
            case KeyQuery(key=key) | TimestampedKeyQuery(key=key):
                self._needs(StoreKind.KEY_VALUE)
                entry = self.view.get(self.key_bytes(key), partition=partition)
                return None if entry is None else self._valued(entry, isinstance(query, TimestampedKeyQuery))
            case RangeQuery() | TimestampedRangeQuery() | PrefixQuery():
                self._needs(StoreKind.KEY_VALUE)
                return self._ranged(query, partition)
            case WindowKeyQuery(key=key, time_from_ms=first, time_to_ms=last):
                self._needs(StoreKind.WINDOW)
                pages = self._pages(lambda part: self.view.windows(self.key_bytes(key), first, last, part), partition)
                return ((each.place.first, self._valued(each, self.spec.timestamped)) for each in pages)
            case WindowRangeQuery():
                return self._windowed(query, partition)
            case VersionedKeyQuery(key=key, as_of_ms=as_of_ms):
                self._needs(StoreKind.VERSIONED)
                at = MOST if as_of_ms is None else as_of_ms
                found = self._versions(self.key_bytes(key), at, at, partition)
                return found[-1] if found else None
            case MultiVersionedKeyQuery(key=key):
                self._needs(StoreKind.VERSIONED)
                first = LEAST if query.from_ms is None else query.from_ms
                last = MOST if query.to_ms is None else query.to_ms
                found = self._versions(self.key_bytes(key), first, last, partition)
                return iter(found if query.order is ResultOrder.ASCENDING else found[::-1])
        raise WrongStore(f"{type(query).__name__} is no query that stores know")

    def _ranged(
        self, query: RangeQuery | TimestampedRangeQuery | PrefixQuery, partition: int
    ) -> Iterator[tuple[Any, Any]]:
        if isinstance(query, PrefixQuery):
            prefix = query.prefix
            pages = self._pages(lambda part: self.view.prefix(prefix, part), partition, query.order)
        else:
            low = None if query.lower is None else self.key_bytes(query.lower)
            high = None if query.upper is None else self.key_bytes(query.upper)
            pages = self._pages(lambda part: self.view.range(low, high, part), partition, query.order)
        timed = isinstance(query, TimestampedRangeQuery)
        return ((self._key_of(each), self._valued(each, timed)) for each in pages)

    def _windowed(self, query: WindowRangeQuery, partition: int) -> Iterator[tuple[Windowed, Any]]:
        if query.key is not None:
            self._needs(StoreKind.SESSION)
            name = self.key_bytes(query.key)
            pages = self._pages(lambda part: self.view.sessions(name, slice_=part), partition)
        else:
            self._needs(StoreKind.WINDOW)
            span = query.time_from_ms, query.time_to_ms
            pages = self._pages(lambda part: self.view.all_windows(*span, slice_=part), partition)
        for each in pages:
            window = _window(self.spec, each.place)
            assert window is not None, "what lies in this store has windows"
            key = Windowed(self._key_of(each), window)
            yield key, self._valued(each, self.spec.timestamped)

    def _pages(
        self, read: Callable[[Slice], Page], partition: int, order: ResultOrder = ResultOrder.ANY
    ) -> Iterator[Entry]:
        part = Slice(reverse=order is ResultOrder.DESCENDING, partition=partition)
        while True:
            page = read(part)
            yield from page.entries
            if not page.more:
                return
            part = part._replace(after=page.entries[-1].place)

    def _versions(self, key: bytes, first: int, last: int, partition: int | None) -> list[VersionedRecord]:
        return [
            VersionedRecord(self._value_of(entry), entry.timestamp, valid_to)
            for entry, valid_to in self.view.versions(key, first, last, partition=partition)
        ]

    def _valued(self, entry: Entry, timed: bool) -> Any:
        value = self._value_of(entry)
        return ValueAndTimestamp(value, entry.timestamp) if timed else value

    def _key_of(self, entry: Entry) -> Any:
        return placed(self.key_serde, self._where(entry)).deserialize(entry.place.key)

    def _value_of(self, entry: Entry) -> Any:
        return placed(self.value_serde, self._where(entry)).deserialize(entry.value)

    def _where(self, entry: Entry) -> Where:
        where = Where(self.topic)
        where.headers = list(entry.headers)
        return where

    def _needs(self, kind: StoreKind) -> None:
        if self.spec.kind is not kind:
            raise WrongStore(f"{self.spec.name} is a {self.spec.kind.value} store, not a {kind.value} store")

    def _answer(self, page: Page) -> Entries:
        entries = tuple(map(self._found, page.entries))
        return Entries(entries, page.entries[-1].place if page.more else None)

    def _found(self, entry: Entry) -> Found:
        return Found(self._key_of(entry), self._value_of(entry), entry.timestamp, _window(self.spec, entry.place))


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
            serdes, has_changelog = _serdes(app, spec), topic == changelog_topic(app.application_id, spec.name)
            view = self._views.get(topic)
            if view is None:
                file = directory / f"{spec.name}.sqlite"
                headers = not has_changelog and any(map(sees_place, serdes))
                view = View(spec.name, spec.kind, file, retention_ms=spec.retention_ms, with_headers=headers)
                self._views[topic] = view
            self._stores[spec.name] = QueryableStore(spec, topic, view, serdes, has_changelog=has_changelog)
        self._host: str | None = app.config["application.server"]
        self._inputs = {name: _inputs(app, name) for name in self._stores}
        self.follower = Follower(app.config.reach("restore.consumer"), self._views, group=app.application_id)

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
            there = ", ".join(self._stores) or f"none: name one with Materialized({name!r})"
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

    def query_metadata_for_key(
        self, store: str, key: Any, partitioner: Partitioner | None = None
    ) -> KeyQueryMetadata | None:
        """None while the store's changelog is not known. `partitioner`: of the topic that the key came by, if it was
        not the default. Raises NoSuchStore."""
        found = self[store]
        count = len(self.progress(found))
        if not count:
            return None
        chosen = None if partitioner is None else partitioner(found.topic, key, None, count)
        if chosen is not None and not isinstance(chosen, int):
            raise ValueError(f"the partitioner gave {chosen!r}: a key lies in one partition")
        partition = partition_of_key(found.key_bytes(key), count) if chosen is None else chosen
        return KeyQueryMetadata(self._host, frozenset(), partition)

    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]:
        """By store and partition, of those whose ends are known."""
        return {
            name: {
                each.partition: LagInfo(each.position, each.end, each.lag)
                for each in self.progress(store)
                if each.end is not None and each.lag is not None
            }
            for name, store in self._stores.items()
        }

    def query(self, request: StateQueryRequest, *, timeout_s: float = 0.0) -> StateQueryResult:
        """Each partition for itself. With a timeout it waits until the position bound is reached, at most so long.

        Raises NoSuchStore."""
        store = self[request.store]
        self.wait_for(store, request.position_bound.position, timeout_s)
        there = {each.partition for each in self.progress(store)}
        asked = sorted(there if request.partitions is None else request.partitions)
        return StateQueryResult({partition: self._asked(store, request, partition, there) for partition in asked})

    def wait_for(self, store: QueryableStore, bound: Position, timeout_s: float) -> bool:
        """Whether the store is where the bound asks for, now or in time."""
        if self.position(store).reaches(bound):
            return True
        return timeout_s > 0 and self.follower.wait_until(lambda: self.position(store).reaches(bound), timeout_s)

    def position(self, store: QueryableStore, partition: int | None = None) -> Position:
        """How far the store is, in the topics that it is made of, and in its changelog."""
        found = Position()
        for place, offset in self.follower.processed().items():
            if self._inputs[store.spec.name].have(place.topic) and partition in (None, place.partition):
                found = found.with_component(place.topic, place.partition, offset - 1)
        for each in self.progress(store):
            if partition in (None, each.partition) and each.position:
                found = found.with_component(store.topic, each.partition, each.position - 1)
        return found

    def _asked(
        self, store: QueryableStore, request: StateQueryRequest, partition: int, there: set[int]
    ) -> QueryResult:  # fmt: skip
        position = self.position(store, partition)
        if partition not in there:
            reason = FailureReason.DOES_NOT_EXIST if there else FailureReason.NOT_PRESENT
            return QueryResult(
                position=position, failure_reason=reason, failure_message=f"partition {partition} of {store.topic}"
            )
        bound = request.position_bound.position
        if not position.reaches(bound, partition):
            return QueryResult(
                position=position,
                failure_reason=FailureReason.NOT_UP_TO_BOUND,
                failure_message=f"partition {partition} is at {dict(position.components)}",
            )
        try:
            return QueryResult(store.ask(request.query, partition), position)
        except WrongStore as error:
            reason = FailureReason.UNKNOWN_QUERY_TYPE
            return QueryResult(position=position, failure_reason=reason, failure_message=str(error))


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
                | ProcessorNode(operation=SubscriptionReceive(store=store))
                | ProcessorNode(operation=StreamTableJoin(buffer=store))
            ):
                private.add(store)
    found = [
        (spec, spec.source_topic or changelog_topic(app.application_id, spec.name))
        for spec in graph.stores.values()
        if (spec.logged or spec.source_topic) and spec.name not in private and spec.kind is not StoreKind.OWN
    ]
    # What a processor makes of a topic is not what lies in it.
    tables = [table for table in graph.global_tables.values() if table.supplier is None]
    return found + [(table.store, table.topic) for table in tables]


class _Inputs(NamedTuple):
    """Of a store."""

    topics: frozenset[str]
    pattern: re.Pattern[str] | None

    def have(self, topic: str) -> bool:
        return topic in self.topics or (self.pattern is not None and self.pattern.fullmatch(topic) is not None)


def _inputs(app: "StreamsApp", store: str) -> _Inputs:
    """The topics whose offsets say how far a store is, as the broker names them: those that its sub-topology reads.
    Behind a repartition both that topic and what is in front of it, since a query may do without the topic."""
    graph = app.graph
    subs = app.topology.sub_topologies()
    found: dict[str, None] = {}
    todo: list[SubTopology] = [sub for sub in subs if any(spec.name == store for spec in sub.stores)]
    patterns: list[str] = []
    for sub in todo:
        patterns += [node.pattern for node in sub.nodes if isinstance(node, SourceNode) and node.pattern is not None]
        for topic in (topic for node in sub.nodes if isinstance(node, SourceNode) for topic in node.topics):
            if topic not in graph.repartition_topics:
                found[topic] = None
                continue
            found[decorated(app.application_id, topic)] = None
            todo += [each for each in subs if each not in todo and _writes(each, topic)]
    others = f"(?!{own_topics(app.application_id)})(?:{'|'.join(f'(?:{each})' for each in patterns)})"
    return _Inputs(frozenset(found), re.compile(others) if patterns else None)


def _writes(sub: SubTopology, topic: str) -> bool:
    return any(isinstance(node, SinkNode) and node.topic == topic for node in sub.nodes)


def _serdes(app: "StreamsApp", spec: StoreSpec) -> tuple[Serde[Any], Serde[Any]]:
    key = spec.key_serde or app.config["default.key.serde"] or Serdes.bytes
    value = spec.value_serde or app.config["default.value.serde"] or Serdes.bytes
    return key, value
