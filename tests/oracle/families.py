"""Random cases, one family for each group of operators. The same seed gives the same case."""

import random
from collections.abc import Callable

from tests.oracle.cases import Case, Weather

STATELESS_VALUES = ["upper", "lower", "exclaim", "with-key", "null-if:b", "text"]
PREDICATES = ["length>3", "starts:a", "key-starts:a", "value-null", "key-null", "all", "none", "length>0"]
KEY_SELECTORS = ["value", "first-letter", "key-upper", "key-letter", "null", "key"]
STRINGS = {"key": "string", "value": "string"}
LONGS = {"key": "string", "value": "long"}

Family = Callable[[random.Random, str], Case]


def _stateless_step(dice: random.Random, case: Case, stream: str) -> str:
    op = dice.choice(
        ["filter", "filter_not", "map_values", "flat_map_values", "map", "flat_map", "select_key", "peek", "merge"]
    )
    name = f"my-{op.replace('_', '-')}-{len(case.steps)}" if dice.random() < 0.2 else None
    if op in ("filter", "filter_not"):
        return case.add(op, stream, f=dice.choice(PREDICATES), name=name)
    if op == "map_values":
        return case.add(op, stream, f=dice.choice(STATELESS_VALUES), name=name)
    if op == "flat_map_values":
        return case.add(op, stream, f=dice.choice(["split-words", "twice", "letters"]), name=name)
    if op == "select_key":
        return case.add(op, stream, f=dice.choice(KEY_SELECTORS), name=name)
    pair = {"key_f": dice.choice(KEY_SELECTORS), "value_f": dice.choice(STATELESS_VALUES)}
    if op == "map":
        return case.add(op, stream, name=name, **pair)
    if op == "flat_map":
        return case.add(op, stream, f=dice.choice(["split-words", "twice"]), name=name, **pair)
    if op == "merge":
        other = case.add("filter", stream, f=dice.choice(PREDICATES))
        return case.add(op, stream, other=other, name=name)
    return case.add(op, stream, name=name)


def stateless(dice: random.Random, name: str) -> Case:
    case = Case(name)
    stream = case.stream(*dice.choice([["in"], ["in", "in2"]]))
    topics = case.steps[0]["topics"]
    for number in range(dice.randint(1, 5)):
        before = stream
        stream = _stateless_step(dice, case, stream)
        if dice.random() < 0.2:
            case.to(before, f"side-{number}")
    case.to(stream)
    Weather(dice, 10).rain(case, topics, 15)
    return case


def splitting(dice: random.Random, name: str) -> Case:
    case = Case(name)
    stream = case.stream("in")
    if dice.random() < 0.5:
        stream = _stateless_step(dice, case, stream)
    branches = [{"f": dice.choice(PREDICATES), "out": f"branch-{number}"} for number in range(dice.randint(1, 3))]
    if dice.random() < 0.5:
        for number, branch in enumerate(branches):
            branch["name"] = f"part-{number}"
    default = {"out": "rest"} if dice.random() < 0.6 else None
    if default is not None and dice.random() < 0.5:
        default["name"] = "others"
    case.add("split", stream, branches=branches, default=default, name=dice.choice([None, "split-"]))
    for branch in branches + ([default] if default else []):
        out = branch["out"]
        if dice.random() < 0.3:
            out = _stateless_step(dice, case, out)
        if dice.random() < 0.3:
            out = case.add("filter", out, f="length>0")
            case.add("to_dynamic", out, prefix="to-", f="first-letter", produced=STRINGS)
        else:
            case.to(out, f"out-{branch['out']}")
    Weather(dice, 10).rain(case, ["in"], 15)
    return case


def rekeyed(dice: random.Random, name: str) -> Case:
    """Repartition topics: by repartition, by group_by, by to_table."""
    case = Case(name)
    stream = case.stream("in")
    for _ in range(dice.randint(1, 2)):
        kind = dice.choice(["repartition", "named", "to_table", "group", "select"])
        selected = case.add("select_key", stream, f=dice.choice(["first-letter", "key-upper", "key-letter"]))
        if kind == "repartition":
            stream = case.add("repartition", selected, repartitioned=STRINGS)
        elif kind == "named":
            stream = case.add(
                "repartition", selected, repartitioned=STRINGS | {"name": f"again-{len(case.steps)}", "partitions": 3}
            )
        elif kind == "to_table":
            kept = STRINGS | ({"store": f"table-{len(case.steps)}"} if dice.random() < 0.5 else {})
            table = case.add(
                "to_table", selected, materialized=kept, name=dice.choice([None, f"tab-{len(case.steps)}"])
            )
            stream = case.add("to_stream", table)
        elif kind == "group":
            grouped = case.add("group_by_key", selected, grouped=STRINGS)
            table = case.add("reduce", grouped, f="concat<12", materialized=STRINGS)
            stream = case.add("to_stream", table)
        else:
            stream = case.add("map_values", selected, f="exclaim")
    case.to(stream)
    Weather(dice, 10).rain(case, ["in"], 15)
    return case


def _grouped(dice: random.Random, case: Case, stream: str) -> str:
    group_name = {"name": "my-group"} if dice.random() < 0.3 else {}
    if dice.random() < 0.6:
        if dice.random() < 0.3:
            stream = case.add("select_key", stream, f="first-letter")
        return case.add("group_by_key", stream, grouped=STRINGS | group_name)
    return case.add("group_by", stream, key_f=dice.choice(["first-letter", "key-upper"]), grouped=STRINGS | group_name)


def _fold(dice: random.Random, case: Case, grouped: str, *, sessions: bool = False) -> tuple[str, str]:
    """A table, and the serde of its values."""
    store: dict[str, object] = {"store": "kept"} if dice.random() < 0.7 else {}
    if dice.random() < 0.15:
        store["logging"] = False
    if case.steps[-1]["op"] == "windowed_by" and dice.random() < 0.2:
        store["retention"] = 150_000
    name = "my-fold" if dice.random() < 0.2 else None
    kind = dice.choice(["count", "reduce", "aggregate", "sum"])
    if kind == "count":
        return case.add("count", grouped, materialized=LONGS | store, name=name), "long"
    if kind == "reduce":
        function = dice.choice(["concat", "max", "min", "last", "first", "concat<10"])
        return case.add("reduce", grouped, f=function, materialized=STRINGS | store, name=name), "string"
    if kind == "aggregate":
        function = dice.choice(["append", "append<12"] if not sessions else ["append"])
        fields = {"initial": "empty", "f": function} | ({"merger": "concat"} if sessions else {})
        return case.add("aggregate", grouped, materialized=STRINGS | store, name=name, **fields), "string"
    fields = {"initial": "zero", "f": "sum-length"} | ({"merger": "sum"} if sessions else {})
    return case.add("aggregate", grouped, materialized=LONGS | store, name=name, **fields), "long"


def aggregates(dice: random.Random, name: str) -> Case:
    case = Case(name)
    table, serde = _fold(dice, case, _grouped(dice, case, case.stream("in")))
    if dice.random() < 0.3:
        predicate = "value>3" if serde == "long" else "length>4"
        table = case.add("filter", table, f=predicate)
    case.to(case.add("to_stream", table), value=serde)
    Weather(dice, 10).rain(case, ["in"], 20)
    return case


def _time_windows(dice: random.Random, case: Case, grouped: str, *, emit: str | None = None) -> str:
    size = dice.choice([10, 10, 15, 60_000])
    advance = dice.choice([None, None, size // 2, max(1, size // 3), size])
    grace = dice.choice([0, 5, 10, 25, size])
    return case.add("windowed_by", grouped, type="time", size=size, advance=advance, grace=grace, emit=emit)


def _session_windows(dice: random.Random, case: Case, grouped: str, *, emit: str | None = None) -> str:
    gap = dice.choice([5, 10, 20])
    return case.add("windowed_by", grouped, type="session", gap=gap, grace=dice.choice([0, 5, 15]), emit=emit)


def windows(dice: random.Random, name: str) -> Case:
    case = Case(name)
    emit = dice.choice([None, None, "update"])
    windowed = _time_windows(dice, case, _grouped(dice, case, case.stream("in")), emit=emit)
    table, serde = _fold(dice, case, windowed)
    _windowed_out(dice, case, table, serde)
    return case


def _windowed_out(dice: random.Random, case: Case, table: str, serde: str) -> None:
    windowed = next(step for step in case.steps if step["op"] == "windowed_by")
    pace = windowed.get("size") or windowed["gap"]
    if dice.random() < 0.5:
        stream = case.add("to_stream", table, key_f="key-text")
        case.to(stream, value=serde, key="string")
    else:
        case.to(case.add("to_stream", table), value=serde)
    Weather(dice, pace, dice.sample(["a", "b", "ab"], dice.randint(1, 3))).rain(case, ["in"], 25)


def windows_on_close(dice: random.Random, name: str) -> Case:
    case = Case(name)
    windowed = _time_windows(dice, case, _grouped(dice, case, case.stream("in")), emit="close")
    table, serde = _fold(dice, case, windowed)
    _windowed_out(dice, case, table, serde)
    return case


def sessions(dice: random.Random, name: str) -> Case:
    case = Case(name)
    windowed = _session_windows(dice, case, _grouped(dice, case, case.stream("in")), emit=dice.choice([None, "update"]))
    table, serde = _fold(dice, case, windowed, sessions=True)
    _windowed_out(dice, case, table, serde)
    return case


def sessions_on_close(dice: random.Random, name: str) -> Case:
    case = Case(name)
    windowed = _session_windows(dice, case, _grouped(dice, case, case.stream("in")), emit="close")
    table, serde = _fold(dice, case, windowed, sessions=True)
    _windowed_out(dice, case, table, serde)
    return case


def suppressed(dice: random.Random, name: str) -> Case:
    case = Case(name)
    grouped = _grouped(dice, case, case.stream("in"))
    sessions = dice.random() < 0.4
    windowed = (_session_windows if sessions else _time_windows)(dice, case, grouped)
    table, serde = _fold(dice, case, windowed, sessions=sessions)
    if dice.random() < 0.2:
        table = case.add("filter", table, f="all")
    table = case.add("suppress", table, name=dice.choice([None, "until-closed"]))
    _windowed_out(dice, case, table, serde)
    return case


def tables(dice: random.Random, name: str) -> Case:
    case = Case(name)
    table = case.table("in", dice.choice([None, "source"]))
    for number in range(dice.randint(0, 3)):
        kept = STRINGS | {"store": f"kept-{number}"} if dice.random() < 0.4 else None
        named = f"my-table-{number}" if dice.random() < 0.2 else None
        op = dice.choice(["filter", "filter_not", "map_values"])
        if op == "map_values":
            table = case.add(
                op, table, f=dice.choice(["upper", "exclaim", "with-key", "null-if:a"]), materialized=kept, name=named
            )
        else:
            table = case.add(
                op,
                table,
                f=dice.choice(["length>3", "starts:a", "key-starts:a", "none"]),
                materialized=kept,
                name=named,
            )
        if dice.random() < 0.2:
            case.to(case.add("to_stream", table), f"side-{number}")
    case.to(case.add("to_stream", table, key_f=dice.choice([None, None, "first-letter"])))
    Weather(dice, 10).rain(case, ["in"], 20)
    return case


def grouped_tables(dice: random.Random, name: str) -> Case:
    case = Case(name)
    table = case.table("in", dice.choice([None, "source"]))
    if dice.random() < 0.4:
        kept = STRINGS | {"store": "between"} if dice.random() < 0.5 else None
        op = dice.choice(["filter", "map_values"])
        table = case.add(op, table, f="length>2" if op == "filter" else "lower", materialized=kept)
    group_name = {"name": "my-group"} if dice.random() < 0.3 else {}
    grouped = case.add(
        "group_by", table, key_f=dice.choice(["first-letter", "key-letter", "value", "key"]),
        value_f=dice.choice(["same", "upper", "null-if:b"]), grouped=STRINGS | group_name,
    )  # fmt: skip
    store = {"store": "kept"} if dice.random() < 0.7 else {}
    named = "my-fold" if dice.random() < 0.2 else None
    kind = dice.choice(["count", "reduce", "aggregate", "sum"])
    serde = "long" if kind in ("count", "sum") else "string"
    if kind == "count":
        folded = case.add("count", grouped, materialized=LONGS | store, name=named)
    elif kind == "reduce":
        folded = case.add("reduce", grouped, f="concat", subtractor="without", materialized=STRINGS | store, name=named)
    elif kind == "aggregate":
        folded = case.add(
            "aggregate", grouped, initial="empty", f=dice.choice(["append", "append<16"]), subtractor="remove",
            materialized=STRINGS | store, name=named,
        )  # fmt: skip
    else:
        folded = case.add(
            "aggregate", grouped, initial="zero", f="sum-length", subtractor="minus-length",
            materialized=LONGS | store, name=named,
        )  # fmt: skip
    case.to(case.add("to_stream", folded), value=serde)
    Weather(dice, 10).rain(case, ["in"], 20)
    return case


def stream_joins(dice: random.Random, name: str) -> Case:
    case = Case(name)
    left, right = case.stream("left"), case.stream("right")
    if dice.random() < 0.2:
        left = case.add("select_key", left, f="key-upper")
    if dice.random() < 0.2:
        right = case.add("map_values", right, f="lower")
    before, after = dice.choice([(10, 10), (15, 15), (0, 10), (10, 0), (5, 20), (0, 0), (20, -5)])
    options = {"key": "string", "value": "string", "other": "string"}
    if dice.random() < 0.3:
        options["name"] = "my-join"
    if dice.random() < 0.3:
        options["store"] = "my-buffer"
    joined = case.add(
        dice.choice(["join", "left_join", "outer_join"]), left, other=right, f=dice.choice(["pair", "pair-key"]),
        before=before, after=after, grace=dice.choice([0, 5, 20, 1000]), stream_joined=options,
    )  # fmt: skip
    case.to(joined)
    Weather(dice, 10, dice.sample(["a", "b", "ab"], dice.randint(1, 2))).rain(case, ["left", "right"], 30)
    return case


def self_joins(dice: random.Random, name: str) -> Case:
    case = Case(name)
    stream = case.stream("in")
    other = case.add("map_values", stream, f="upper") if dice.random() < 0.7 else stream
    joined = case.add(
        dice.choice(["join", "left_join", "outer_join"]), stream, other=other, f="pair", before=10, after=10,
        grace=dice.choice([0, 5]), stream_joined={"key": "string", "value": "string", "other": "string"},
    )  # fmt: skip
    case.to(joined)
    Weather(dice, 10, ["a", "b"]).rain(case, ["in"], 12)
    return case


def table_joins(dice: random.Random, name: str) -> Case:
    case = Case(name)
    stream = case.stream("views")
    if dice.random() < 0.4:
        stream = case.add("select_key", stream, f=dice.choice(["key-upper", "key-letter"]))
    kind = dice.choice(["source", "source", "aggregate", "to_table", "mapped"])
    if kind == "source":
        table = case.table("profiles", dice.choice([None, "profiles-store"]))
    elif kind == "aggregate":
        grouped = case.add("group_by_key", case.stream("profiles"), grouped=STRINGS)
        table = case.add("reduce", grouped, f="concat<9", materialized=STRINGS)
    elif kind == "to_table":
        table = case.add("to_table", case.stream("profiles"), materialized=STRINGS)
    else:
        table = case.table("profiles", dice.choice([None, "profiles-store"]))
        kept = STRINGS | {"store": "mapped"} if dice.random() < 0.5 else None
        op = dice.choice(["filter", "map_values"])
        table = case.add(op, table, f="length>3" if op == "filter" else "null-if:b", materialized=kept)
    options = {"key": "string", "value": "string", "other": "string"} | (
        {"name": "enrich"} if dice.random() < 0.3 else {}
    )
    joined = case.add(
        dice.choice(["join", "left_join"]), stream, other=table, f=dice.choice(["pair", "pair-key"]), joined=options
    )
    case.to(joined)
    Weather(dice, 10).rain(case, ["views", "profiles"], 25)
    return case


def global_joins(dice: random.Random, name: str) -> Case:
    case = Case(name)
    table = case.global_table("profiles", dice.choice([None, "everyone"]))
    stream = case.stream("views")
    joined = case.add(
        dice.choice(["join", "left_join"]), stream, other=table, key_f=dice.choice(["key", "first-letter", "value"]),
        f=dice.choice(["pair", "pair-key"]), name=dice.choice([None, "look-up"]),
    )  # fmt: skip
    case.to(joined)
    Weather(dice, 10).rain(case, ["views", "profiles"], 25)
    return case


def processors(dice: random.Random, name: str) -> Case:
    case = Case(name)
    kind = dice.choice(
        ["put-get", "put-if-absent", "range", "window", "headers", "times", "clock", "count", "fixed-times"]
    )
    spec: dict[str, object] = {"kind": kind}
    stores: list[str] = []
    op = "process"
    if kind in ("put-get", "put-if-absent", "range", "clock", "count"):
        stores = [case.store("kv")]
        spec["store"] = "kv"
    if kind == "range":
        spec |= {"from": dice.choice([None, "a"]), "to": dice.choice([None, "b"]), "reverse": dice.random() < 0.5}
    if kind == "window":
        case.add(
            "store", kind="window", name="ws", key="string", value="string", retention=dice.choice([60, 200]), size=10,
            duplicates=dice.random() < 0.3,
        )  # fmt: skip
        stores = ["ws"]
        spec |= {
            "store": "ws",
            "before": dice.choice([0, 10, 100]),
            "after": dice.choice([0, 10]),
            "every": dice.random() < 0.4,
        }
    if kind == "clock":
        spec |= {
            "type": dice.choice(["stream", "wall"]),
            "interval": dice.choice([7, 10, 30]),
            "clear": dice.random() < 0.3,
        }
        if dice.random() < 0.3:
            spec["times"] = 2
        if dice.random() < 0.3:
            spec["start"] = dice.choice([5, 50])
    if kind in ("count", "fixed-times"):
        op = "process_values"
        spec["kind"] = "times" if kind == "fixed-times" else kind
    stream = case.stream("in")
    named = "my-processor" if dice.random() < 0.3 else None
    stream = case.add(op, stream, processor=spec, stores=stores, name=named)
    # The test driver has one stream time for all sub-topologies, which is not so anywhere else.
    if kind != "times" and dice.random() < 0.4:
        grouped = case.add("group_by_key", stream, grouped=STRINGS)
        table = case.add("count", grouped, materialized=LONGS)
        case.to(case.add("to_stream", table), value="long")
    else:
        case.to(stream)
    weather = Weather(dice, 10, ["a", "b", "ab", "ü"])
    for _ in range(20):
        if dice.random() < 0.2:
            case.advance_wall_clock(dice.choice([1, 7, 10, 35]))
        else:
            weather.rain(case, ["in"], 1)
    return case


def extracted_times(dice: random.Random, name: str) -> Case:
    case = Case(name)
    extractor = dice.choice(["value", "value-or-partition"])
    stream = case.stream("in", extractor=extractor)
    grouped = case.add("group_by_key", stream, grouped=STRINGS)
    windowed = case.add("windowed_by", grouped, type="time", size=10, grace=5)
    table = case.add("count", windowed, materialized=LONGS | {"store": "kept"})
    case.to(stream, "stamped")
    case.to(case.add("to_stream", table, key_f="key-text"), value="long", key="string")
    weather = Weather(dice, 10, ["a", "b"])
    for _ in range(20):
        value = str(weather.time()) if dice.random() < 0.8 else "not a number"
        case.feed("in", weather.key(), value, weather.time())
    return case


def poisoned(dice: random.Random, name: str) -> Case:
    """Functions that raise, in front of and behind a repartition, and bytes that cannot be read."""
    case = Case(name, dead_letters="dead-letters")
    stream = case.stream("in")
    if dice.random() < 0.5:
        stream = case.add("filter", stream, f="fail:be")
    if dice.random() < 0.5:
        stream = case.add("select_key", stream, f="first-letter")
    grouped = case.add("group_by_key", stream, grouped=STRINGS)
    table = case.add("reduce", grouped, f="last", materialized=STRINGS | {"store": "kept"})
    if dice.random() < 0.5:
        table = case.add("filter", table, f="fail:sea")
    stream = case.add("to_stream", table)
    case.to(case.add("filter", stream, f="fail:e"))
    case.to(case.add("map_values", case.stream("numbers", value="long"), f="plus:1"), "sums", value="long")
    weather = Weather(dice, 10)
    for _ in range(20):
        if dice.random() < 0.3:
            case.feed("numbers", weather.key(), dice.choice(["12345678", "123", "", None]), weather.time())
        else:
            weather.rain(case, ["in"], 1)
    return case


def mixed(dice: random.Random, name: str) -> Case:
    """Whatever fits together: streams and tables of strings, grown in random order."""
    case = Case(name)
    topics = ["in", "in2", "in3"]
    grown = _Grown(dice, case)
    for topic in topics[: dice.randint(1, 3)]:
        grown.source(topic)
    for _ in range(dice.randint(3, 9)):
        grown.grow()
    for number, stream in enumerate(grown.streams[-3:]):
        case.to(stream, f"out-{number}")
    for number, table in enumerate(grown.tables[-2:]):
        case.to(case.add("to_stream", table), f"table-{number}")
    Weather(dice, 10).rain(case, grown.topics, 20)
    return case


class _Grown:
    """What of a mixed topology can be built on."""

    def __init__(self, dice: random.Random, case: Case) -> None:
        self.dice = dice
        self.case = case
        self.topics: list[str] = []
        self.streams: list[str] = []
        self.tables: list[str] = []
        self.globals: list[str] = []

    def source(self, topic: str) -> None:
        self.topics.append(topic)
        kind = self.dice.choice(["stream", "stream", "table", "global"]) if self.streams else "stream"
        if kind == "stream":
            self.streams.append(self.case.stream(topic))
        elif kind == "table":
            self.tables.append(self.case.table(topic, self.dice.choice([None, f"store-of-{topic}"])))
        else:
            self.globals.append(self.case.global_table(topic, self.dice.choice([None, f"store-of-{topic}"])))

    def grow(self) -> None:
        ways = [self._stateless, self._aggregate, self._join_streams, self._process]
        if self.tables:
            ways += [self._from_table, self._join_table, self._regroup]
        if self.globals:
            ways.append(self._join_global)
        self.dice.choice(ways)()

    def _stateless(self) -> None:
        self.streams.append(_stateless_step(self.dice, self.case, self.dice.choice(self.streams)))

    def _kept(self) -> dict[str, str]:
        return STRINGS | ({"store": f"kept-{len(self.case.steps)}"} if self.dice.random() < 0.4 else {})

    def _aggregate(self) -> None:
        dice, case = self.dice, self.case
        stream = dice.choice(self.streams)
        if dice.random() < 0.2:
            self.tables.append(case.add("to_table", stream, materialized=self._kept()))
            return
        options = STRINGS | ({"name": f"group-{len(case.steps)}"} if dice.random() < 0.3 else {})
        grouped = case.add("group_by_key", stream, grouped=options)
        self.tables.append(case.add("reduce", grouped, f="concat<10", materialized=self._kept()))

    def _join_streams(self) -> None:
        dice, case = self.dice, self.case
        left, right = dice.choice(self.streams), dice.choice(self.streams)
        options = {"key": "string", "value": "string", "other": "string"}
        if dice.random() < 0.3:
            options["name"] = f"join-{len(case.steps)}"
        op = dice.choice(["join", "left_join", "outer_join"])
        joined = case.add(op, left, other=right, f="pair", before=10, after=5, grace=5, stream_joined=options)
        self.streams.append(joined)

    def _process(self) -> None:
        dice, case = self.dice, self.case
        if dice.random() < 0.5:
            self.streams.append(case.add("process", dice.choice(self.streams), processor={"kind": "headers"}))
            return
        store = case.store(f"kv-{len(case.steps)}")
        spec = {"kind": "count", "store": store}
        self.streams.append(case.add("process_values", dice.choice(self.streams), processor=spec, stores=[store]))

    def _from_table(self) -> None:
        dice, case = self.dice, self.case
        table = dice.choice(self.tables)
        op = dice.choice(["filter", "map_values", "to_stream"])
        if op == "to_stream":
            self.streams.append(case.add(op, table, key_f=dice.choice([None, "first-letter"])))
        else:
            kept = self._kept() if dice.random() < 0.4 else None
            self.tables.append(case.add(op, table, f="length>3" if op == "filter" else "upper", materialized=kept))

    def _join_table(self) -> None:
        dice, case = self.dice, self.case
        options = {"key": "string", "value": "string", "other": "string"}
        if dice.random() < 0.3:
            options["name"] = f"enrich-{len(case.steps)}"
        op = dice.choice(["join", "left_join"])
        stream, table = dice.choice(self.streams), dice.choice(self.tables)
        self.streams.append(case.add(op, stream, other=table, f="pair", joined=options))

    def _join_global(self) -> None:
        dice, case = self.dice, self.case
        op = dice.choice(["join", "left_join"])
        stream, table = dice.choice(self.streams), dice.choice(self.globals)
        self.streams.append(case.add(op, stream, other=table, key_f=dice.choice(["key", "first-letter"]), f="pair"))

    def _regroup(self) -> None:
        dice, case = self.dice, self.case
        options = STRINGS | ({"name": f"regroup-{len(case.steps)}"} if dice.random() < 0.3 else {})
        grouped = case.add("group_by", dice.choice(self.tables), key_f="first-letter", value_f="same", grouped=options)
        folded = {"initial": "empty", "f": "append<16", "subtractor": "remove", "materialized": self._kept()}
        self.tables.append(case.add("aggregate", grouped, **folded))


FAMILIES: dict[str, Family] = {
    family.__name__.replace("_", "-"): family
    for family in (
        stateless, splitting, rekeyed, aggregates, windows, windows_on_close, sessions, sessions_on_close, suppressed,
        tables, grouped_tables, stream_joins, self_joins, table_joins, global_joins, processors, extracted_times,
        poisoned, mixed,
    )
}  # fmt: skip


def random_case(family: str, seed: int) -> Case:
    name = f"{family}-{seed}"
    return FAMILIES[family](random.Random(name), name)
