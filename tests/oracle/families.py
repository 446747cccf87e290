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
        if dice.random() < 0.1:
            case.add("print", before, name=dice.choice([None, "printed"]))
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
    if case.steps[-1]["op"] == "windowed_by" and dice.random() < 0.2 and case.steps[-1]["type"] != "unlimited":
        store["retention"] = 150_000
    if dice.random() < 0.2:
        store["type"] = "memory"
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
    pace = windowed.get("size") or windowed.get("gap") or 10
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


def _sliding_windows(dice: random.Random, case: Case, grouped: str, *, emit: str | None = None) -> str:
    size, grace = dice.choice([5, 10, 10, 15, 60_000]), dice.choice([0, 5, 10, 40])
    return case.add("windowed_by", grouped, type="sliding", size=size, grace=grace, emit=emit)


def _unlimited_window(dice: random.Random, case: Case, grouped: str) -> str:
    return case.add("windowed_by", grouped, type="unlimited", start=dice.choice([0, 0, 7, 30]))


def sliding_windows(dice: random.Random, name: str) -> Case:
    case = Case(name)
    emit = dice.choice([None, None, "update"])
    windowed = _sliding_windows(dice, case, _grouped(dice, case, case.stream("in")), emit=emit)
    table, serde = _fold(dice, case, windowed)
    if dice.random() < 0.2:
        table = case.add("suppress", table)
    _windowed_out(dice, case, table, serde)
    return case


def sliding_windows_on_close(dice: random.Random, name: str) -> Case:
    case = Case(name)
    windowed = _sliding_windows(dice, case, _grouped(dice, case, case.stream("in")), emit="close")
    table, serde = _fold(dice, case, windowed)
    _windowed_out(dice, case, table, serde)
    return case


def unlimited_windows(dice: random.Random, name: str) -> Case:
    case = Case(name)
    table, serde = _fold(dice, case, _unlimited_window(dice, case, _grouped(dice, case, case.stream("in"))))
    _windowed_out(dice, case, table, serde)
    return case


def cogrouped(dice: random.Random, name: str) -> Case:
    """Up to three streams, some of them under a new key, over all windows; sometimes two tables of one cogroup."""
    case = Case(name)
    topics = ["in", "in2", "in3"][: dice.randint(1, 3)]
    cogroup = ""
    for number, topic in enumerate(topics):
        stream = case.stream(topic)
        options = dict(STRINGS)
        if dice.random() < 0.3:
            stream = case.add("select_key", stream, f=dice.choice(["key-upper", "first-letter"]))
            options["name"] = f"my-group-{number}"  # without one Kafka has no two topics under the store's name
        grouped = case.add("group_by_key", stream, grouped=options)
        function = dice.choice(["append", "append", "append<12", "remove"])
        if cogroup:
            cogroup = case.add("cogroup", cogroup, other=grouped, f=function)
        else:
            cogroup = case.add("cogroup", grouped, f=function)
    windows = dice.choice(["none", "none", "time", "sliding", "session", "unlimited"])
    makers = {"time": _time_windows, "sliding": _sliding_windows, "session": _session_windows}
    if windows == "unlimited":
        cogroup = _unlimited_window(dice, case, cogroup)
    elif windows != "none":
        cogroup = makers[windows](dice, case, cogroup)
    for number in range(dice.choice([1, 1, 2])):
        kept = STRINGS | ({"store": f"kept-{number}"} if dice.random() < 0.6 else {})
        table = case.add(
            "aggregate", cogroup, initial="empty", merger="concat" if windows == "session" else None,
            materialized=kept, name=dice.choice([None, None, f"my-cogroup-{number}"]),
        )  # fmt: skip
        if windows == "none" and dice.random() < 0.5:
            table = case.add("filter", table, f="length>4")
        stream = case.add("to_stream", table, key_f=None if windows == "none" else "key-text")
        case.to(stream, f"out-{number}", key="string")
    Weather(dice, 10, dice.sample(["a", "b", "ab"], dice.randint(1, 3))).rain(case, topics, 25)
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


def held_back(dice: random.Random, name: str) -> Case:
    """suppress by time, with buffers that overflow, of tables of all kinds, and a stream that looks into one."""
    case = Case(name)
    kind = dice.choice(["source", "filtered", "aggregate", "windows"])
    topics = ["in"]
    serde: str = "string"
    if kind == "aggregate":
        table, serde = _fold(dice, case, _grouped(dice, case, case.stream("in")))
    elif kind == "windows":
        table, serde = _fold(dice, case, _time_windows(dice, case, _grouped(dice, case, case.stream("in"))))
    else:
        table = case.table("in", dice.choice([None, "source"]))
        if kind == "filtered":
            table = case.add("filter", table, f="length>2")
    # As an expression the sum of nothing is null, which takes no bytes.
    most_bytes = None if case.steps[-1].get("f") == "sum-length" else dice.choice([None, None, 150, 300])
    table = case.add(
        "suppress", table, limit=dice.choice([0, 5, 10, 30]), name=dice.choice([None, "a-while"]),
        max_records=dice.choice([None, None, 1, 2]), max_bytes=most_bytes,
    )  # fmt: skip
    if kind in ("source", "filtered"):
        if dice.random() < 0.3:
            table = case.add("map_values", table, f="upper")
        if dice.random() < 0.5:
            topics.append("views")
            options = {"key": "string", "value": "string", "other": "string"}
            joined = case.add("left_join", case.stream("views"), other=table, f="pair", joined=options)
            case.to(joined, "seen")
    stream = case.add("to_stream", table, key_f="key-text" if kind == "windows" else None)
    case.to(stream, value=serde, key="string")
    Weather(dice, 10, dice.sample(["a", "b", "ab"], dice.randint(1, 3))).rain(case, topics, 25)
    return case


def cached(dice: random.Random, name: str) -> Case:
    """Several updates of a key come of one record, and the driver commits after each: the last one goes out."""
    case = Case(name, cache=10_000_000)
    stream = case.stream("in")
    for _ in range(dice.randint(1, 2)):
        stream = case.add("flat_map_values", stream, f=dice.choice(["split-words", "twice", "letters"]))
    windows = dice.choice(["none", "none", "time", "sliding", "session"])
    if dice.random() < 0.2:
        table = case.add("to_table", stream, materialized=STRINGS | {"store": "kept"})
        windows, serde = "none", "string"
    else:
        grouped = case.add("group_by_key", stream, grouped=STRINGS)
        makers = {"time": _time_windows, "sliding": _sliding_windows, "session": _session_windows}
        if windows != "none":
            # Of windows that close Kafka's cache gives some that its store has forgotten.
            emit = None if windows == "time" else dice.choice([None, None, "close"])
            grouped = makers[windows](dice, case, grouped, emit=emit)
        table, serde = _fold(dice, case, grouped, sessions=windows == "session")
    if windows != "none":
        case.steps[-1]["materialized"]["retention"] = 90_000_000  # Kafka's cache shows what its store has forgotten
    if windows == "sliding" and "f" in case.steps[-1]:
        case.steps[-1]["f"] = case.steps[-1]["f"].split("<")[0]  # Kafka falls over rows deleted in its cache
    if dice.random() < 0.3:
        case.steps[-1]["materialized"]["caching"] = False
    case.to(case.add("to_stream", table, key_f="key-text"), "first", value=serde, key="string")
    if windows == "none" and serde == "string":
        kept = STRINGS | {"store": "filtered", "caching": dice.random() < 0.7}
        table = case.add("filter", table, f="length>3", materialized=kept if dice.random() < 0.6 else None)
        if dice.random() < 0.4:
            grouped = case.add("group_by", table, key_f="first-letter", value_f="same", grouped=STRINGS)
            fields = {"initial": "empty", "f": "append", "subtractor": "remove", "materialized": STRINGS}
            table = case.add("aggregate", grouped, **fields)
        case.to(case.add("to_stream", table), "second", key="string")
    Weather(dice, 10, dice.sample(["a", "b", "ab"], dice.randint(1, 3))).rain(case, ["in"], 25)
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


def aggregate_expressions(dice: random.Random, name: str) -> Case:
    """Folds that column expressions have as well: over a stream, windows, sessions, or a table that takes rows back."""
    case = Case(name)
    store = {"store": "kept"} if dice.random() < 0.5 else {}
    over = dice.choice(["stream", "windows", "sessions", "table"])
    if over == "table":
        table = case.table("in", None)
        key = dice.choice(["first-letter", "key-letter", "value"])
        grouped = case.add("group_by", table, key_f=key, value_f="same", grouped=STRINGS)
        step = {"initial": "zero", "f": "one-more", "subtractor": "one-less"}
        case.to(case.add("to_stream", case.add("aggregate", grouped, materialized=LONGS | store, **step)), value="long")
        Weather(dice, 10).rain(case, ["in"], 25)
        return case
    grouped = _grouped(dice, case, case.stream("in"))
    function = dice.choice(["latest", "earliest", "largest", "smallest"])
    fields = {"initial": "null", "f": function} | ({"merger": function} if over == "sessions" else {})
    if over == "windows":
        grouped = _time_windows(dice, case, grouped, emit=dice.choice([None, "close"]))
    elif over == "sessions":
        grouped = _session_windows(dice, case, grouped, emit=dice.choice([None, "close"]))
    table = case.add("aggregate", grouped, materialized=STRINGS | store, **fields)
    if over != "stream":
        _windowed_out(dice, case, table, "string")
        return case
    case.to(case.add("to_stream", table))
    Weather(dice, 10).rain(case, ["in"], 25)
    return case


def _row_by_row(dice: random.Random, case: Case, table: str) -> str:
    """The table itself, or one made of it, with or without a store."""
    op = dice.choice([None, None, "filter", "map_values", "transform_values"])
    if op is None:
        return table
    kept = STRINGS | {"store": f"between-{len(case.steps)}"} if dice.random() < 0.4 else None
    if op == "transform_values":
        spec = {"kind": "marked", "kept": dice.random() < 0.4}
        return case.add(op, table, transformer=spec, materialized=kept)
    function = "length>2" if op == "filter" else dice.choice(["upper", "null-if:b"])
    return case.add(op, table, f=function, materialized=kept)


def _any_table(dice: random.Random, case: Case, topic: str) -> str:
    kind = dice.choice(["source", "source", "source", "aggregate", "to_table"])
    if kind == "source":
        return _row_by_row(dice, case, case.table(topic, dice.choice([None, f"{topic}-store"])))
    if kind == "to_table":
        return case.add("to_table", case.stream(topic), materialized=STRINGS)
    grouped = case.add("group_by_key", case.stream(topic), grouped=STRINGS)
    return case.add("reduce", grouped, f="concat<9", materialized=STRINGS)


def _kept_result(dice: random.Random, case: Case) -> dict[str, str] | None:
    if dice.random() < 0.5:
        return None
    return STRINGS | ({"store": f"joined-{len(case.steps)}"} if dice.random() < 0.7 else {})


def _table_out(dice: random.Random, case: Case, table: str) -> None:
    """As a stream, or behind something that needs its old values or looks it up."""
    way = dice.choice(["stream", "stream", "filter", "regroup", "lookup"])
    if way == "filter":
        table = case.add("filter", table, f="length>8")
    elif way == "regroup":
        grouped = case.add("group_by", table, key_f="first-letter", value_f="same", grouped=STRINGS)
        folded = {"initial": "empty", "f": "append", "subtractor": "remove", "materialized": STRINGS}
        table = case.add("aggregate", grouped, **folded)
    elif way == "lookup":
        options = {"key": "string", "value": "string", "other": "string"}
        joined = case.add("left_join", case.stream("views"), other=table, f="pair", joined=options)
        case.to(joined, "views-out")
    case.to(case.add("to_stream", table))


def joined_tables(dice: random.Random, name: str) -> Case:
    case = Case(name)
    table = _any_table(dice, case, "left")
    for topic in ["right", "third"][: dice.choice([1, 1, 2])]:
        other = table if dice.random() < 0.05 else _any_table(dice, case, topic)
        table = case.add(
            dice.choice(["join", "left_join", "outer_join"]), table, other=other,
            f=dice.choice(["pair", "pair", "right"]), materialized=_kept_result(dice, case),
            name=f"my-join-{len(case.steps)}" if dice.random() < 0.3 else None,
        )  # fmt: skip
        table = _row_by_row(dice, case, table) if dice.random() < 0.3 else table
    _table_out(dice, case, table)
    Weather(dice, 10).rain(case, sorted(_read(case)), 30)
    return case


def _read(case: Case) -> set[str]:
    topics = {topic for step in case.steps for topic in step.get("topics", ())}
    return topics | {step["topic"] for step in case.steps if step["op"] == "table"}


LETTERS = ["a", "b", "e", "s", "o"]


def foreign_key_joins(dice: random.Random, name: str) -> Case:
    """The first letter of a value, or of a key, is the key of the other table."""
    case = Case(name)
    table = _row_by_row(dice, case, case.table("left", dice.choice([None, "left-store"])))
    for topic in ["right", "third"][: dice.choice([1, 1, 2])]:
        other = (
            table if dice.random() < 0.05 else _row_by_row(dice, case, case.table(topic, dice.choice([None, topic])))
        )
        options: dict[str, object] = {"name": f"fk-{len(case.steps)}"} if dice.random() < 0.3 else {}
        if dice.random() < 0.2:
            options["partition"] = 0
        table = case.add(
            dice.choice(["join", "left_join"]), table, other=other, f=dice.choice(["pair", "pair", "right"]),
            key_f=dice.choice(["first-letter", "first-letter", "key-letter", "value"]),
            materialized=_kept_result(dice, case), table_joined=options,
        )  # fmt: skip
    _table_out(dice, case, table)
    weather = Weather(dice, 10)
    for _ in range(30):
        topic = dice.choice(sorted(_read(case)))
        key = weather.key() if topic in ("left", "views") else dice.choice([*LETTERS, None])
        case.feed(topic, key, weather.value(), weather.time(), *weather.headers())
    return case


def transformed_tables(dice: random.Random, name: str) -> Case:
    case = Case(name)
    table = case.table("in", dice.choice([None, "source"]))
    for number in range(dice.randint(1, 2)):
        spec: dict[str, object] = {"kind": "marked", "kept": dice.random() < 0.5}
        stores = []
        if dice.random() < 0.5:
            stores = [case.store(f"seen-{number}")]
            spec = {"kind": "changed", "store": stores[0]}
        kept = STRINGS | {"store": f"kept-{number}"} if dice.random() < 0.5 else None
        table = case.add(
            "transform_values", table, transformer=spec, stores=stores, materialized=kept,
            name=f"my-transformer-{number}" if dice.random() < 0.3 else None,
        )  # fmt: skip
    if dice.random() < 0.4:
        grouped = case.add("group_by", table, key_f="first-letter", value_f="same", grouped=STRINGS)
        table = case.add("count", grouped, materialized=LONGS)
        case.to(case.add("to_stream", table), value="long")
    else:
        case.to(case.add("to_stream", table))
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
        eager=True if before == after and dice.random() < 0.5 else None,
    )  # fmt: skip
    case.to(joined)
    Weather(dice, 10, dice.sample(["a", "b", "ab"], dice.randint(1, 2))).rain(case, ["left", "right"], 30)
    return case


def optimized(dice: random.Random, name: str) -> Case:
    """One new key, behind which several groups, joins and tables stand, some behind a merge, filters in between."""
    rules = ["reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"]
    case = Case(name, optimization=dice.choice(["all", "all", ",".join(dice.sample(rules, 2)), dice.choice(rules)]))
    topics = ["in"]
    stream = case.add("select_key", case.stream("in"), f=dice.choice(["key-upper", "key-letter"]))
    if dice.random() < 0.3:
        topics.append("in2")
        other = case.add("select_key", case.stream("in2"), f="key-letter")
        stream = case.add("merge", stream, other=other)
    for number in range(dice.randint(1, 4)):
        before = stream
        for _ in range(dice.randint(0, 2)):
            before = case.add(dice.choice(["filter", "map_values", "peek"]), before, f="length>1")
            if case.steps[-1]["op"] == "map_values":
                case.steps[-1]["f"] = "upper"
        kind = dice.choice(["group", "group", "table", "self-join", "join"])
        if kind == "group":
            named = {"name": f"group-{number}"} if dice.random() < 0.3 else {}
            grouped = case.add("group_by_key", before, grouped=STRINGS | named)
            table = case.add("reduce", grouped, f="concat<12", materialized=STRINGS)
            case.to(case.add("to_stream", table), f"out-{number}")
        elif kind == "table":
            case.to(case.add("to_stream", case.add("to_table", before, materialized=STRINGS)), f"out-{number}")
        elif kind == "join":
            if "profiles" not in topics:
                topics.append("profiles")
                table = case.table("profiles", dice.choice([None, "people"]))
                options = {"key": "string", "value": "string", "other": "string"}
                case.to(case.add("left_join", before, other=table, f="pair", joined=options), f"out-{number}")
        else:
            joined = case.add(
                dice.choice(["join", "left_join"]), before, other=before, f="pair", before=10, after=5, grace=5,
                stream_joined={"key": "string", "value": "string", "other": "string"},
            )  # fmt: skip
            case.to(joined, f"out-{number}")
    Weather(dice, 10, ["a", "b"]).rain(case, topics, 15)
    return case


def self_joins(dice: random.Random, name: str) -> Case:
    case = Case(name, optimization=dice.choice(["none", "all"]))
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


def store_reads(dice: random.Random, name: str) -> Case:
    """Stores in memory and of bounded size, and reads from the other end and by ranges of keys."""
    case = Case(name)
    if dice.random() < 0.4:
        case.add("store", kind="key-value", name="kept", most=dice.choice([1, 2, 3]), **STRINGS)
        spec: dict[str, object] = {"kind": dice.choice(["put-get", "put-get", "put-if-absent", "range"])}
        spec |= {"from": dice.choice([None, "a"]), "to": dice.choice([None, "b"]), "reverse": dice.random() < 0.5}
    else:
        case.add(
            "store", kind="window", name="kept", retention=dice.choice([60, 200]), size=10, memory=dice.random() < 0.6,
            duplicates=dice.random() < 0.3, **STRINGS,
        )  # fmt: skip
        spec = {"kind": "window", "before": dice.choice([10, 100]), "after": 10, "backward": dice.random() < 0.6}
        spec |= dice.choice([{"every": True}, {"every": False}, {"every": False, "keys": ["a", "b"]}])
    case.to(case.add("process", case.stream("in"), processor=spec | {"store": "kept"}, stores=["kept"]))
    Weather(dice, 10, ["a", "b", "ab", "ü"]).rain(case, ["in"], 30)
    return case


def stores_with_headers(dice: random.Random, name: str) -> Case:
    case = Case(name)
    windows = dice.random() < 0.5
    if windows:
        case.add("store", kind="window", name="held", retention=200, size=10, duplicates=False, headers=True, **STRINGS)
    else:
        case.add("store", kind="key-value", name="held", headers=True, **STRINGS)
    spec = {"kind": "keep-headers", "store": "held", "windows": windows}
    case.to(case.add("process", case.stream("in"), processor=spec, stores=["held"]))
    Weather(dice, 10, ["a", "b"]).rain(case, ["in"], 30)
    return case


LOOKS = [-(10**7), -70_000, -300, -120, -61, -30, -11, -10, -1, 0, 1, 10, 100, 10**7]


def _history(dice: random.Random) -> dict[str, int]:
    """Short enough that versions expire, and segments so short that a history lies in several."""
    history = dice.choice([0, 10, 60, 300, 60_000])
    return {"history": history} | ({} if dice.random() < 0.3 else {"segment": dice.choice([1, 7, 30, 200])})


def versioned_stores(dice: random.Random, name: str) -> Case:
    case = Case(name)
    case.add("store", kind="versioned", name="kept", **STRINGS, **_history(dice))
    spec = {"kind": "versions", "store": "kept", "puts": True, "deletes": dice.random() < 0.5, "looks": LOOKS}
    case.to(case.add("process", case.stream("in"), processor=spec, stores=["kept"]))
    Weather(dice, 10, dice.sample(["a", "b"], dice.randint(1, 2))).rain(case, ["in"], 40)
    return case


def versioned_table_joins(dice: random.Random, name: str) -> Case:
    """Of tables by key and by foreign key: rows out of order are left out on the side that has versions."""
    case = Case(name)
    sides = []
    for topic in ("left", "right"):
        versions = _history(dice) if dice.random() < 0.7 else {}
        kept = STRINGS | {"store": topic} | versions
        table = case.add("table", topic=topic, consumed=STRINGS, materialized=kept)
        sides.append(case.add("filter", table, f="length>0") if dice.random() < 0.3 else table)
    result = STRINGS | {"store": "joined"} | (_history(dice) if dice.random() < 0.4 else {})
    fields: dict[str, object] = {"f": "pair", "materialized": result}
    if dice.random() < 0.4:
        joined = case.add(
            dice.choice(["join", "left_join"]), sides[0], other=sides[1], key_f="key-letter", table_joined={}, **fields
        )
    else:
        joined = case.add(dice.choice(["join", "left_join", "outer_join"]), sides[0], other=sides[1], **fields)
    case.to(case.add("to_stream", joined))
    Weather(dice, 10, ["a", "b"]).rain(case, ["left", "right"], 40)
    return case


def _versioned_table(dice: random.Random, case: Case) -> str:
    kept = STRINGS | {"store": "kept"} | _history(dice)
    kind = dice.choice(["table", "table", "to_table", "reduce", "derived"])
    if kind == "table":
        return case.add("table", topic="table", consumed=STRINGS, materialized=kept)
    if kind == "to_table":
        return case.add("to_table", case.stream("table"), materialized=kept)
    if kind == "reduce":
        grouped = case.add("group_by_key", case.stream("table"), grouped=STRINGS)
        return case.add("reduce", grouped, f=dice.choice(["last", "concat<10"]), materialized=kept)
    return case.add("filter", case.table("table", "plain"), f="length>2", materialized=kept)


def versioned_tables(dice: random.Random, name: str) -> Case:
    """What operators make of versions that come out of order."""
    case = Case(name)
    table = _versioned_table(dice, case)
    for _ in range(dice.randint(0, 2)):
        if dice.random() < 0.5:
            table = case.add("filter", table, f=dice.choice(["length>2", "starts:a"]))
        else:
            more = STRINGS | {"store": f"more-{len(case.steps)}"} | (_history(dice) if dice.random() < 0.5 else {})
            table = case.add("map_values", table, f="exclaim", materialized=dice.choice([None, more]))
    if dice.random() < 0.5:
        grouped = case.add("group_by", table, key_f="key-letter", value_f="same", grouped=STRINGS)
        kept = STRINGS | dice.choice([{}, {"store": "grouped"} | _history(dice)])
        how = {"initial": "empty", "f": "append<12", "subtractor": "remove"}
        table = case.add("aggregate", grouped, materialized=kept, **how)
    case.to(case.add("to_stream", table))
    spec = {"kind": "versions", "store": "kept", "puts": False, "looks": LOOKS}
    case.to(case.add("process", case.stream("probe"), processor=spec, stores=["kept"]), "seen")
    Weather(dice, 10, ["a", "b"]).rain(case, ["table", "table", "probe"], 40)
    return case


def versioned_joins(dice: random.Random, name: str) -> Case:
    """A stream with a table as of its own time, at once or after a grace."""
    case = Case(name)
    stream = case.stream("stream")
    table = _versioned_table(dice, case)
    history = next(step["materialized"]["history"] for step in case.steps if "history" in step.get("materialized", {}))
    if dice.random() < 0.4:
        table = case.add("map_values", table, f="exclaim")
    joined: dict[str, object] = {"key": "string", "value": "string", "other": "string"}
    if dice.random() < 0.7:
        joined["grace"] = dice.choice([grace for grace in (0, 5, 30, 200) if grace <= history])
    if dice.random() < 0.2:
        joined["name"] = "my-join"
    op = dice.choice(["join", "left_join"])
    if "grace" in joined:
        stream = case.add("filter_not", stream, f="key-null")  # a left join with grace fails without a key
    result = case.add(op, stream, other=table, f=dice.choice(["pair", "pair-key"]), joined=joined)
    if dice.random() < 0.3:
        result = case.add("process", result, processor={"kind": "headers"})
    case.to(result)
    Weather(dice, 10, ["a", "b"]).rain(case, ["stream", "table"], 40)
    return case


FAMILIES: dict[str, Family] = {
    family.__name__.replace("_", "-"): family
    for family in (
        stateless, splitting, rekeyed, aggregates, windows, windows_on_close, sliding_windows, sliding_windows_on_close,
        unlimited_windows, cogrouped, sessions, sessions_on_close, suppressed, held_back,
        cached, optimized,
        tables, grouped_tables, stream_joins, self_joins, table_joins, global_joins, processors, extracted_times,
        poisoned, mixed, joined_tables, foreign_key_joins, transformed_tables, versioned_stores, versioned_tables,
        versioned_joins, versioned_table_joins, store_reads,
        stores_with_headers, aggregate_expressions,
    )
}  # fmt: skip


def random_case(family: str, seed: int) -> Case:
    name = f"{family}-{seed}"
    return FAMILIES[family](random.Random(name), name)
