"""Builds the topology of a case with our own DSL."""

from collections.abc import Callable
from typing import Any

from ottla.streams import (
    Branched,
    Consumed,
    Emit,
    Grouped,
    InvalidTimestamp,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Printed,
    Produced,
    Repartitioned,
    Serde,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimestampExtractor,
    TimeWindows,
    Topology,
    UnlimitedWindows,
)
from ottla.streams.topology.stores import StoreSpec
from tests.oracle import expressions, functions
from tests.oracle.cases import Case, Step
from tests.oracle.processors import processor, transformer


def topology_of(case: Case, *, columns: bool = False) -> Topology:
    """Kafka Streams is given string as default serde for keys and values, and so are we.

    With `columns` functions are column expressions where those can say it.
    """
    maker = _Maker(_Expressions() if columns else _Functions())
    for step in case.steps:
        maker.add(step)
    topology = maker.builder.build(topology_optimization=case.optimization)
    for step in maker.afterwards:
        _add_to_topology(topology, step)
    return topology


def serde(name: str | None) -> Serde[Any] | None:
    if name is None:
        return None
    if name.startswith("windowed:"):
        return Serdes.time_windowed(Serdes.string, int(name.removeprefix("windowed:")))
    known: dict[str, Serde[Any]] = {
        "string": Serdes.string,
        "long": Serdes.long,
        "int": Serdes.int,
        "double": Serdes.double,
        "bytes": Serdes.bytes,
        "session": Serdes.session_windowed(Serdes.string),
    }
    return known[name]


def _serdes(options: Step) -> dict[str, Any]:
    return {"key_serde": serde(options.get("key")), "value_serde": serde(options.get("value"))}


def _consumed(step: Step) -> Consumed[Any, Any]:
    options = step.get("consumed", {})
    return Consumed(
        **_serdes(options), name=options.get("name"), timestamp_extractor=_extractor(options.get("extractor"))
    )


def _extractor(name: str | None) -> TimestampExtractor | None:
    if name is None:
        return None
    partition_time_else = name == "value-or-partition"

    def written_in_the_value(key: Any, value: str, timestamp: int, partition_time: int) -> int:
        if value.isdigit():
            return int(value)
        return partition_time if partition_time_else else -1

    return TimestampExtractor(written_in_the_value, InvalidTimestamp.SKIP)


def _materialized(step: Step) -> Materialized[Any, Any] | None:
    options = step.get("materialized")
    if options is None:
        return None
    return Materialized(
        options.get("store"),
        **_serdes(options),
        logging=options.get("logging", True),
        retention_ms=options.get("retention"),
        store_type="in_memory" if options.get("type") == "memory" else "rocksDB",
        history_retention_ms=options.get("history"),
        segment_interval_ms=options.get("segment"),
        caching=options.get("caching", True),
    )


def _grouped(step: Step) -> Grouped[Any, Any]:
    options = step.get("grouped", {})
    return Grouped(**_serdes(options), name=options.get("name"))


def _produced(step: Step) -> Produced[Any, Any]:
    options = step.get("produced", {})
    return Produced(**_serdes(options), name=options.get("name"))


def _pair(step: Step) -> Callable[[Any, Any], tuple[Any, Any]]:
    key, value = functions.key_selector(step["key_f"]), functions.value_mapper(step["value_f"])
    return lambda k, v: (key(k, v), value(k, v))


def _pairs(step: Step) -> Callable[[Any, Any], list[tuple[Any, Any]]]:
    many, pair = functions.flat_mapper(step["f"]), _pair(step)
    return lambda k, v: [pair(k, each) for each in many(k, v)]


def _windows(step: Step) -> Any:
    grace = step.get("grace", 0)
    match step["type"]:
        case "session":
            return SessionWindows.of(step["gap"], grace_ms=grace)
        case "sliding":
            return SlidingWindows.of(step["size"], grace_ms=grace)
        case "unlimited":
            return UnlimitedWindows.of(start_ms=step["start"])
    return TimeWindows.of(step["size"], grace_ms=grace, advance_ms=step.get("advance"))


class _Functions:
    """Python callables."""

    def predicate(self, name: str) -> Any:
        return functions.predicate(name)

    def key_selector(self, name: str) -> Any:
        return functions.key_selector(name)

    def value_mapper(self, name: str) -> dict[str, Any]:
        """Those that do not look at the key are called without it."""
        function = functions.value_mapper(name)
        if name == "with-key":
            return {"function": function, "with_key": True}
        return {"function": lambda value: function(None, value)}

    def map(self, step: Step) -> dict[str, Any]:
        return {"function": _pair(step)}

    def fold(self, step: Step) -> list[Any]:
        how: list[Any] = [functions.initializer(step["initial"]), functions.aggregator(step["f"])]
        if "merger" in step:
            how.append(functions.merger(step["merger"]))
        return how

    def table_fold(self, step: Step) -> list[Any]:
        both = [functions.aggregator(step[part]) for part in ("f", "subtractor")]
        return [functions.initializer(step["initial"]), *both]

    def joiner(self, name: str) -> dict[str, Any]:
        function = functions.joiner(name)
        if name == "pair-key":
            return {"joiner": function, "with_key": True}
        return {"joiner": lambda left, right: function(None, left, right)}


class _Expressions(_Functions):
    """Column expressions, where they can say it."""

    def predicate(self, name: str) -> Any:
        found = expressions.predicate(name)
        return super().predicate(name) if found is None else found

    def key_selector(self, name: str) -> Any:
        found = expressions.key_selector(name)
        return super().key_selector(name) if found is None else found

    def value_mapper(self, name: str) -> dict[str, Any]:
        found = expressions.value_mapper(name)
        return super().value_mapper(name) if found is None else {"function": found}

    def map(self, step: Step) -> dict[str, Any]:
        key, value = expressions.key_selector(step["key_f"]), expressions.value_mapper(step["value_f"])
        return super().map(step) if key is None or value is None else {"key": key, "value": value}

    def fold(self, step: Step) -> list[Any]:
        found = expressions.aggregator(step["f"])
        return super().fold(step) if found is None else [found]

    def table_fold(self, step: Step) -> list[Any]:
        return super().table_fold(step) if step["f"] != "one-more" else self.fold(step)

    def joiner(self, name: str) -> dict[str, Any]:
        found = expressions.joiner(name)
        return super().joiner(name) if found is None else {"joiner": found}


def _in_partition(number: int) -> Callable[[str, Any, Any, int], int]:
    return lambda topic, key, value, partitions: number % partitions


def _store(step: Step) -> StoreSpec:
    key, value = serde(step["key"]), serde(step["value"])
    assert key is not None and value is not None
    if step["kind"] == "versioned":
        return Stores.versioned_key_value(
            step["name"], key, value, history_retention_ms=step["history"], segment_interval_ms=step.get("segment")
        )
    if step["kind"] == "window":
        return Stores.window(
            step["name"], key, value, window_size_ms=step["size"], retention_ms=step["retention"],
            retain_duplicates=step["duplicates"], in_memory=step.get("memory", False),
            headers=step.get("headers", False),
        )  # fmt: skip
    return Stores.key_value(
        step["name"], key, value, logging=step.get("logging", True), most_entries=step.get("most"),
        headers=step.get("headers", False),
    )  # fmt: skip


class _Maker:
    """Takes one step after the other."""

    def __init__(self, language: _Functions) -> None:
        self.language = language
        self.builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
        self.made: dict[str, Any] = {}
        self.afterwards: list[Step] = []

    def add(self, step: Step) -> None:
        op = step["op"]
        if op.startswith("add_"):
            self.afterwards.append(step)
            return
        make: Callable[[Step], Any] | None = getattr(self, f"_{op}", None)
        assert make is not None, f"no such step: {step}"
        self.made[step["out"]] = make(step)

    def _in(self, step: Step) -> Any:
        return self.made[step["in"]]

    def _stream(self, step: Step) -> Any:
        topics = step["topics"]
        return self.builder.stream(topics[0] if len(topics) == 1 else topics, _consumed(step))

    def _table(self, step: Step) -> Any:
        return self.builder.table(step["topic"], _consumed(step), _materialized(step))

    def _global_table(self, step: Step) -> Any:
        return self.builder.global_table(step["topic"], _consumed(step), _materialized(step))

    def _store(self, step: Step) -> Any:
        self.builder.add_state_store(_store(step))

    # ---- streams and tables

    def _filter(self, step: Step) -> Any:
        return self._filtered(step, "filter")

    def _filter_not(self, step: Step) -> Any:
        return self._filtered(step, "filter_not")

    def _filtered(self, step: Step, method: str) -> Any:
        source = self._in(step)
        kept = (_materialized(step),) if isinstance(source, KTable) else ()
        return getattr(source, method)(self.language.predicate(step["f"]), *kept, name=step.get("name"))

    def _map_values(self, step: Step) -> Any:
        source = self._in(step)
        kept = {"materialized": _materialized(step)} if isinstance(source, KTable) else {}
        return source.map_values(**self.language.value_mapper(step["f"]), **kept, name=step.get("name"))

    def _flat_map_values(self, step: Step) -> Any:
        function = functions.flat_mapper(step["f"])
        return self._in(step).flat_map_values(lambda value: function(None, value), name=step.get("name"))

    def _select_key(self, step: Step) -> Any:
        return self._in(step).select_key(self.language.key_selector(step["f"]), name=step.get("name"))

    def _map(self, step: Step) -> Any:
        return self._in(step).map(**self.language.map(step), name=step.get("name"))

    def _flat_map(self, step: Step) -> Any:
        return self._in(step).flat_map(_pairs(step), name=step.get("name"))

    def _peek(self, step: Step) -> Any:
        return self._in(step).peek(lambda key, value: None, name=step.get("name"))

    def _foreach(self, step: Step) -> Any:
        return self._in(step).foreach(lambda key, value: None, name=step.get("name"))

    def _print(self, step: Step) -> Any:
        self._in(step).print(Printed.to_file("/dev/null"), name=step.get("name"))

    def _merge(self, step: Step) -> Any:
        return self._in(step).merge(self.made[step["other"]], name=step.get("name"))

    def _split(self, step: Step) -> None:
        split = self._in(step).split(name=step.get("name"))
        for branch in step["branches"]:
            split = split.branch(self.language.predicate(branch["f"]), self._branch(branch))
        if "default" in step:
            split.default_branch(self._branch(step["default"]))
        else:
            split.no_default_branch()

    def _branch(self, branch: Step) -> Branched[Any, Any]:
        def keep(stream: KStream[Any, Any]) -> None:
            self.made[branch["out"]] = stream

        return Branched(branch.get("name"), keep)

    def _repartition(self, step: Step) -> Any:
        options = step["repartitioned"]
        return self._in(step).repartition(
            Repartitioned(options.get("name"), **_serdes(options), partitions=options.get("partitions"))
        )

    def _to(self, step: Step) -> None:
        self._in(step).to(step["topic"], _produced(step))

    def _to_dynamic(self, step: Step) -> None:
        key = functions.key_selector(step["f"])
        self._in(step).to(lambda k, v, where: f"{step['prefix']}{functions.text(key(k, v))}", _produced(step))

    def _to_table(self, step: Step) -> Any:
        return self._in(step).to_table(_materialized(step), name=step.get("name"))

    def _to_stream(self, step: Step) -> Any:
        key = self.language.key_selector(step["key_f"]) if "key_f" in step else None
        return self._in(step).to_stream(key, name=step.get("name"))

    def _suppress(self, step: Step) -> Any:
        name = step.get("name")
        if "limit" not in step:
            return self._in(step).suppress(Suppressed.until_window_closes(name=name))
        most: dict[str, Any] = {"max_records": step.get("max_records"), "max_bytes": step.get("max_bytes")}
        return self._in(step).suppress(Suppressed.until_time_limit(step["limit"], name=name, **most))

    # ---- groups

    def _group_by_key(self, step: Step) -> Any:
        return self._in(step).group_by_key(_grouped(step))

    def _group_by(self, step: Step) -> Any:
        source = self._in(step)
        if isinstance(source, KTable):
            return source.group_by(_pair(step), _grouped(step))
        return source.group_by(self.language.key_selector(step["key_f"]), _grouped(step))

    def _windowed_by(self, step: Step) -> Any:
        windowed = self._in(step).windowed_by(_windows(step))
        if "emit" not in step:
            return windowed
        return windowed.emit_strategy(Emit.ON_CLOSE if step["emit"] == "close" else Emit.ON_UPDATE)

    def _cogroup(self, step: Step) -> Any:
        aggregator = functions.aggregator(step["f"])
        other = (self.made[step["other"]],) if "other" in step else ()
        return self._in(step).cogroup(*other, aggregator)

    def _count(self, step: Step) -> Any:
        return self._in(step).count(_materialized(step), name=step.get("name"))

    def _reduce(self, step: Step) -> Any:
        both = [functions.reducer(step[part]) for part in ("f", "subtractor") if part in step]
        return self._in(step).reduce(*both, _materialized(step), name=step.get("name"))

    def _aggregate(self, step: Step) -> Any:
        if "subtractor" in step:
            how = self.language.table_fold(step)
        elif "f" not in step:
            how = [functions.initializer(step["initial"])]
            how += [functions.merger(step["merger"])] if "merger" in step else []
        else:
            how = self.language.fold(step)
        return self._in(step).aggregate(*how, materialized=_materialized(step), name=step.get("name"))

    # ---- joins

    def _join(self, step: Step) -> Any:
        return self._joined(step, "join")

    def _left_join(self, step: Step) -> Any:
        return self._joined(step, "left_join")

    def _outer_join(self, step: Step) -> Any:
        return self._joined(step, "outer_join")

    def _joined(self, step: Step, method: str) -> Any:
        source, other = self._in(step), self.made[step["other"]]
        join = getattr(source, method)
        how = self.language.joiner(step["f"])
        if isinstance(source, KTable):
            return join(other, materialized=_materialized(step), **self._foreign_key(step), **how)
        if isinstance(other, KStream):
            make = JoinWindows.eager if step.get("eager") else JoinWindows.between
            windows = make(before_ms=step["before"], after_ms=step["after"], grace_ms=step["grace"])
            options = step.get("stream_joined", {})
            said = StreamJoined(
                **_serdes(options), other_value_serde=serde(options.get("other")), name=options.get("name"),
                store_name=options.get("store"),
            )  # fmt: skip
            return join(other, windows=windows, joined=said, **how)
        if isinstance(other, KTable):
            options = step.get("joined", {})
            joined = Joined(
                **_serdes(options), other_value_serde=serde(options.get("other")), name=options.get("name"),
                grace_ms=options.get("grace"),
            )  # fmt: skip
            return join(other, joined=joined, **how)
        return join(other, key_mapper=self.language.key_selector(step["key_f"]), name=step.get("name"), **how)

    def _foreign_key(self, step: Step) -> dict[str, Any]:
        if "key_f" not in step:
            return {"name": step.get("name")}
        function = self.language.key_selector(step["key_f"])
        options = step.get("table_joined", {})
        place = _in_partition(options["partition"]) if "partition" in options else None
        joined: TableJoined[Any, Any] = TableJoined(place, place, options.get("name"))
        return {"foreign_key": function, "foreign_key_with_key": True, "joined": joined}

    def _transform_values(self, step: Step) -> Any:
        supplier = transformer(step["transformer"])
        kept, used = _materialized(step), step.get("stores", ())
        return self._in(step).transform_values(supplier, kept, stores=used, name=step.get("name"))

    # ---- processors

    def _process(self, step: Step) -> Any:
        supplier = processor(step["processor"])
        return self._in(step).process(supplier, stores=step.get("stores", ()), name=step.get("name"))

    def _process_values(self, step: Step) -> Any:
        supplier = processor(step["processor"], fixed_key=True)
        return self._in(step).process_values(supplier, stores=step.get("stores", ()), name=step.get("name"))


def _add_to_topology(topology: Topology, step: Step) -> None:
    """Steps of the Processor API, after the DSL's."""
    name, parents = step["name"], step.get("parents", ())
    if step["op"] == "add_source":
        topology.add_source(name, *step["topics"], **_serdes(step))
    elif step["op"] == "add_processor":
        topology.add_processor(name, processor(step["processor"]), *parents)
    elif step["op"] == "add_store":
        topology.add_state_store(_store(step), *step.get("processors", ()))
    else:
        topology.add_sink(name, step["topic"], *parents, **_serdes(step))
