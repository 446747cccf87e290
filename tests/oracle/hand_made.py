"""Topologies picked by hand: those that people write, and the corners where names and numbers are easily wrong."""

from collections.abc import Callable

from tests.oracle.cases import Case
from tests.oracle.families import LONGS, STRINGS

JOINED = {"key": "string", "value": "string", "other": "string"}


def word_count(case: Case) -> None:
    words = case.add("flat_map_values", case.stream("streams-plaintext-input"), f="split-words")
    grouped = case.add("group_by", words, key_f="value", grouped=STRINGS)
    counts = case.add("count", grouped, materialized=LONGS | {"store": "counts-store"})
    case.to(case.add("to_stream", counts), "streams-wordcount-output", value="long")
    for time, line in enumerate(["hello kafka streams", "hello", "", "streams all the way", "hello"]):
        case.feed("streams-plaintext-input", None, line, time + 1)


def lateness(case: Case) -> None:
    """Tumbling, session and left join side by side, with times on the edges."""
    left, right = case.stream("left"), case.stream("right")
    grouped = case.add("group_by_key", left, grouped=STRINGS)
    tumbling = case.add("windowed_by", grouped, type="time", size=10, grace=5)
    counts = case.add("count", tumbling, materialized=LONGS | {"store": "tumbling"})
    case.to(case.add("to_stream", counts, key_f="key-text"), "tumbling-out", value="long", key="string")
    session = case.add("windowed_by", grouped, type="session", gap=10, grace=5)
    counts = case.add("count", session, materialized=LONGS | {"store": "sessions"})
    case.to(case.add("to_stream", counts, key_f="key-text"), "session-out", value="long", key="string")
    joined = case.add("left_join", left, other=right, f="pair", before=15, after=15, grace=5, stream_joined=JOINED)
    case.to(joined, "joined-out")
    for time in (1, 5, 14, 40, 22, 2, 60):
        case.feed("left", "k", f"L{time}", time)
    case.feed("right", "k", "R58", 58)
    case.feed("left", "k", "L100", 100)


def late_left_matches_too(case: Case) -> None:
    left, right = case.stream("left"), case.stream("right")
    case.to(case.add("left_join", left, other=right, f="pair", before=15, after=15, grace=5, stream_joined=JOINED))
    for topic, time in [
        ("left", 40),
        ("left", 22),
        ("left", 25),
        ("right", 30),
        ("right", 58),
        ("left", 60),
        ("left", 99),
    ]:
        case.feed(topic, "k", f"{topic}{time}", time)


def nothing_but_a_copy(case: Case) -> None:
    case.to(case.stream("in"))
    case.feed("in", "a", "b", 3, ("h", "1"), ("h", "2"))
    case.feed("in", None, None, 0)


def several_topics(case: Case) -> None:
    case.to(case.stream("in", "in2", "in3"))


def one_topic_twice(case: Case) -> None:
    case.to(case.add("map_values", case.stream("in"), f="upper"), "one")
    case.to(case.add("map_values", case.stream("in"), f="lower"), "two")
    case.feed("in", "a", "Be", 1)


def named_everything(case: Case) -> None:
    stream = case.stream("in", name="the-source")
    stream = case.add("filter", stream, f="length>0", name="the-filter")
    stream = case.add("map", stream, key_f="first-letter", value_f="upper", name="the-map")
    grouped = case.add("group_by_key", stream, grouped=STRINGS | {"name": "the-group"})
    table = case.add("count", grouped, materialized=LONGS | {"store": "the-store"}, name="the-count")
    stream = case.add("to_stream", table, name="the-stream")
    case.add("to", stream, topic="out", produced={"value": "long", "name": "the-sink"})
    case.feed("in", "a", "word", 1)


def a_name_for_the_group_only(case: Case) -> None:
    grouped = case.add("group_by", case.stream("in"), key_f="value", grouped=STRINGS | {"name": "by-value"})
    case.to(case.add("to_stream", case.add("count", grouped, materialized=LONGS)), value="long")


def no_names(case: Case) -> None:
    grouped = case.add("group_by", case.stream("in"), key_f="value", grouped=STRINGS)
    case.to(case.add("to_stream", case.add("count", grouped, materialized=LONGS)), value="long")


def one_group_counted_twice(case: Case) -> None:
    grouped = case.add("group_by", case.stream("in"), key_f="value", grouped=STRINGS | {"name": "shared"})
    case.to(
        case.add("to_stream", case.add("count", grouped, materialized=LONGS | {"store": "one"})), "out-1", value="long"
    )
    reduced = case.add("reduce", grouped, f="concat", materialized=STRINGS | {"store": "two"})
    case.to(case.add("to_stream", reduced), "out-2")
    case.feed("in", "a", "x", 1)
    case.feed("in", "a", "x", 2)


def rekeyed_once_used_twice(case: Case) -> None:
    """Two aggregates over one re-keyed stream: each has a repartition topic of its own."""
    stream = case.add("select_key", case.stream("in"), f="value")
    for number in range(2):
        grouped = case.add("group_by_key", stream, grouped=STRINGS)
        counted = case.add("count", grouped, materialized=LONGS | {"store": f"count-{number}"})
        case.to(case.add("to_stream", counted), f"out-{number}", value="long")
    case.feed("in", "a", "x", 1)


def chained_aggregates(case: Case) -> None:
    grouped = case.add("group_by_key", case.stream("in"), grouped=STRINGS)
    table = case.add("reduce", grouped, f="last", materialized=STRINGS | {"store": "latest"})
    again = case.add("group_by", table, key_f="first-letter", value_f="same", grouped=STRINGS)
    counts = case.add("count", again, materialized=LONGS | {"store": "by-letter"})
    case.to(case.add("to_stream", counts), value="long")
    for time, (key, value) in enumerate([("a", "xx"), ("b", "xy"), ("a", "yx"), ("b", "yy"), ("a", "xx")]):
        case.feed("in", key, value, time)


def every_stream_join(case: Case) -> None:
    left, right = case.stream("left"), case.stream("right")
    for op in ("join", "left_join", "outer_join"):
        joined = case.add(op, left, other=right, f="pair", before=10, after=10, grace=0, stream_joined=JOINED)
        case.to(joined, f"out-{op}")
    for topic, time in [("left", 1), ("right", 5), ("right", 30), ("left", 60), ("right", 61), ("left", 100)]:
        case.feed(topic, "k", f"{topic}{time}", time)


def named_stream_joins(case: Case) -> None:
    left, right = case.stream("left"), case.stream("right")
    for op in ("join", "left_join", "outer_join"):
        for extra in ({"name": f"by-name-{op}"}, {"store": f"by-store-{op}"}, {"name": f"n-{op}", "store": f"s-{op}"}):
            options = JOINED | extra
            joined = case.add(op, left, other=right, f="pair", before=10, after=10, grace=0, stream_joined=options)
            case.to(joined, f"out-{len(case.steps)}")


def joins_of_rekeyed_streams(case: Case) -> None:
    left = case.add("select_key", case.stream("left"), f="value")
    right = case.add("select_key", case.stream("right"), f="value")
    for options in (JOINED, JOINED | {"name": "named"}, JOINED | {"store": "kept"}):
        joined = case.add(
            "outer_join", left, other=right, f="pair", before=10, after=10, grace=0, stream_joined=options
        )
        case.to(joined, f"out-{len(case.steps)}")


def three_way_join(case: Case) -> None:
    """Views with profiles, then with searches."""
    views, searches = case.stream("views"), case.stream("searches")
    profiles = case.table("profiles", "profiles-store")
    enriched = case.add("left_join", views, other=profiles, f="pair", joined=JOINED)
    joined = case.add(
        "left_join", enriched, other=searches, f="pair", before=0, after=1000, grace=0, stream_joined=JOINED
    )
    case.to(joined)
    case.feed("profiles", "u", "Ann", 0)
    case.feed("views", "u", "page", 10)
    case.feed("searches", "u", "shoes", 500)
    case.feed("views", "v", "page", 3000)
    case.feed("views", "u", "page", 9000)


def table_join_of_a_rekeyed_stream(case: Case) -> None:
    table = case.table("profiles")
    for options in (JOINED, JOINED | {"name": "enrich"}):
        stream = case.add("map", case.stream(f"views-{len(case.steps)}"), key_f="value", value_f="same")
        case.to(case.add("join", stream, other=table, f="pair", joined=options), f"out-{len(case.steps)}")


def join_with_a_table_that_is_not_stored(case: Case) -> None:
    table = case.add("filter", case.table("profiles"), f="length>1")
    table = case.add("map_values", table, f="upper")
    case.to(case.add("left_join", case.stream("views"), other=table, f="pair", joined=JOINED))
    for time, (topic, value) in enumerate([("profiles", "ann"), ("views", "p"), ("profiles", "x"), ("views", "p")]):
        case.feed(topic, "u", value, time)


def global_tables(case: Case) -> None:
    everyone, places = case.global_table("people", "everyone"), case.global_table("places")
    stream = case.add("join", case.stream("views"), other=everyone, key_f="value", f="pair")
    stream = case.add("left_join", stream, other=places, key_f="key", f="pair", name="with-places")
    case.to(stream)
    case.feed("people", "p", "Ann", 0)
    case.feed("views", "k", "p", 1)
    case.feed("places", "k", "here", 2)
    case.feed("views", "k", "p", 3)


def branches(case: Case) -> None:
    stream = case.stream("in")
    named = [{"f": "starts:a", "out": "as", "name": "a"}, {"f": "starts:b", "out": "bs"}]
    case.add("split", stream, branches=named, default={"out": "rest"}, name="by-letter-")
    plain = [{"f": "starts:a", "out": "plain-as"}, {"f": "starts:b", "out": "plain-bs"}]
    case.add("split", stream, branches=plain, default={"out": "plain-rest"})
    case.add("split", stream, branches=[{"f": "length>3", "out": "long"}])
    for source in ("as", "bs", "rest", "plain-as", "plain-bs", "plain-rest", "long"):
        case.to(source, f"out-{source}")
    for value in ("alpha", "b", "c", None):
        case.feed("in", "k", value, 1)


def merged_branches(case: Case) -> None:
    stream = case.stream("in")
    case.add("split", stream, branches=[{"f": "starts:a", "out": "as"}], default={"out": "rest"})
    merged = case.add("merge", case.add("map_values", "as", f="upper"), other="rest")
    case.to(case.add("merge", merged, other=case.stream("in2"), name="the-merge"))


def dynamic_topics(case: Case) -> None:
    case.add("to_dynamic", case.stream("in"), prefix="to-", f="value", produced=STRINGS)
    case.feed("in", "k", "x", 1)
    case.feed("in", "k", "y", 2)


def repartitions(case: Case) -> None:
    stream = case.stream("in")
    stream = case.add("repartition", stream, repartitioned=STRINGS | {"name": "spread", "partitions": 4})
    stream = case.add("map_values", stream, f="upper")
    case.to(case.add("repartition", stream, repartitioned=STRINGS))
    case.feed("in", "k", "x", 1)
    case.feed("in", None, "x", 2)


def stream_to_table(case: Case) -> None:
    stream = case.stream("in")
    case.to(case.add("to_stream", case.add("to_table", stream, materialized=STRINGS)), "out-1")
    kept = STRINGS | {"store": "as-table"}
    case.to(case.add("to_stream", case.add("to_table", stream, materialized=kept, name="tabled")), "out-2")
    rekeyed = case.add("select_key", stream, f="value")
    case.to(case.add("to_stream", case.add("to_table", rekeyed, materialized=STRINGS | {"store": "again"})), "out-3")
    case.to(case.add("to_stream", case.add("to_table", rekeyed, materialized=STRINGS, name="named")), "out-4")
    for time, (key, value) in enumerate([("a", "x"), ("a", None), (None, "x"), ("a", "y")]):
        case.feed("in", key, value, time)


def tables_of_tables(case: Case) -> None:
    table = case.table("in", "source")
    filtered = case.add("filter", table, f="length>3", materialized=STRINGS | {"store": "long-ones"})
    mapped = case.add("map_values", filtered, f="upper", materialized=STRINGS | {"store": "loud"}, name="shout")
    quiet = case.add("filter_not", mapped, f="starts:A")
    for number, each in enumerate((table, filtered, mapped, quiet)):
        case.to(case.add("to_stream", each), f"out-{number}")
    for time, value in enumerate(["alpha", "al", "beta", None, "alpha", "gamma"]):
        case.feed("in", "k", value, time)


def out_of_order_table(case: Case) -> None:
    case.to(case.add("to_stream", case.table("in", "source")))
    for time, value in [(10, "ten"), (5, "five"), (10, "again"), (7, None), (20, "twenty")]:
        case.feed("in", "k", value, time)


def grouped_table_every_way(case: Case) -> None:
    grouped = case.add(
        "group_by", case.table("in"), key_f="first-letter", value_f="same", grouped=STRINGS | {"name": "letters"}
    )
    case.to(
        case.add("to_stream", case.add("count", grouped, materialized=LONGS | {"store": "counted"})),
        "out-1",
        value="long",
    )
    reduced = case.add("reduce", grouped, f="concat", subtractor="without", materialized=STRINGS | {"store": "reduced"})
    case.to(case.add("to_stream", reduced), "out-2")
    folded = case.add("aggregate", grouped, initial="empty", f="append", subtractor="remove", materialized=STRINGS)
    case.to(case.add("to_stream", folded), "out-3")
    for time, (key, value) in enumerate([("a", "xa"), ("b", "xb"), ("a", "ya"), ("b", None), ("a", "yb")]):
        case.feed("in", key, value, time)


def every_window(case: Case) -> None:
    grouped = case.add("group_by_key", case.stream("in"), grouped=STRINGS)
    for number, emit in enumerate(("update", "close")):
        time = case.add("windowed_by", grouped, type="time", size=10, advance=5, grace=0, emit=emit)
        table = case.add("count", time, materialized=LONGS | {"store": f"hopping-{number}"})
        case.to(case.add("to_stream", table), f"hops-{number}", value="long")
        session = case.add("windowed_by", grouped, type="session", gap=10, grace=0, emit=emit)
        table = case.add("count", session, materialized=LONGS | {"store": f"sessions-{number}"})
        case.to(case.add("to_stream", table), f"sessions-out-{number}", value="long")
    for time_ms in (1, 4, 12, 30, 8, 29, 60):
        case.feed("in", "k", "v", time_ms)


def final_results(case: Case) -> None:
    grouped = case.add("group_by_key", case.stream("in"), grouped=STRINGS)
    windowed = case.add("windowed_by", grouped, type="time", size=10, grace=5)
    table = case.add("count", windowed, materialized=LONGS | {"store": "kept"})
    case.to(case.add("to_stream", case.add("suppress", table)), "final-1", value="long")
    case.to(case.add("to_stream", case.add("suppress", table, name="closed")), "final-2", value="long")
    for time in (1, 9, 11, 3, 16, 4, 31, 60):
        case.feed("in", "k", "v", time)


def windowed_join_then_count(case: Case) -> None:
    left, right = case.stream("left"), case.add("map", case.stream("right"), key_f="value", value_f="same")
    joined = case.add("join", left, other=right, f="pair", before=10, after=10, grace=0, stream_joined=JOINED)
    grouped = case.add("group_by", joined, key_f="first-letter", grouped=STRINGS)
    case.to(case.add("to_stream", case.add("count", grouped, materialized=LONGS)), value="long")
    case.feed("left", "x", "lx", 1)
    case.feed("right", "k", "x", 5)


def processors_share_a_store(case: Case) -> None:
    store = case.store("shared")
    spec = {"kind": "put-get", "store": store}
    case.to(case.add("process", case.stream("in"), processor=spec, stores=[store]), "out-1")
    case.to(case.add("process", case.stream("in2"), processor=spec, stores=[store], name="second"), "out-2")
    case.feed("in", "k", "x", 1)
    case.feed("in2", "k", "y", 2)


def process_and_group(case: Case) -> None:
    """After process the key may have changed, after process_values not."""
    store = case.store("kv")
    stream = case.stream("in")
    changed = case.add("process", stream, processor={"kind": "headers"})
    kept = case.add("process_values", stream, processor={"kind": "count", "store": store}, stores=[store])
    for number, each in enumerate((changed, kept)):
        grouped = case.add("group_by_key", each, grouped=STRINGS)
        case.to(case.add("to_stream", case.add("count", grouped, materialized=LONGS)), f"out-{number}", value="long")
    case.feed("in", "k", "x", 1)


def processor_api(case: Case) -> None:
    case.add("add_source", name="from", topics=["in"], key="string", value="string")
    case.add(
        "add_processor", name="choose", processor={"kind": "child", "long": "loud", "short": "quiet"}, parents=["from"]
    )
    case.add("add_processor", name="loud", processor={"kind": "headers"}, parents=["choose"])
    case.add("add_processor", name="quiet", processor={"kind": "put-get", "store": "kv"}, parents=["choose"])
    case.add("add_store", kind="key-value", name="kv", key="string", value="string", processors=["quiet"])
    case.add("add_sink", name="to", topic="out", key="string", value="string", parents=["loud", "quiet"])
    case.feed("in", "k", "long", 1, ("h", "1"))
    case.feed("in", "k", "s", 2)
    case.feed("in", "k", None, 3)


def a_stream_that_ends_nowhere(case: Case) -> None:
    stream = case.stream("in")
    case.add("foreach", stream)
    case.add("foreach", case.add("peek", stream, name="look"), name="end")
    case.stream("unused")


def a_loop_of_topics(case: Case) -> None:
    """What is written to a topic that is also a source comes in again."""
    case.to(case.add("filter", case.stream("in"), f="length>0"), "between")
    case.to(case.add("map_values", case.stream("between"), f="exclaim"))
    case.feed("in", "k", "x", 1, ("h", "1"))


def joined_windows(case: Case) -> None:
    """Tables with windowed keys: by key, and each with the other as its foreign key."""
    counts = []
    for topic in ("left", "right"):
        grouped = case.add("group_by_key", case.stream(topic), grouped=STRINGS)
        windowed = case.add("windowed_by", grouped, type="time", size=10, grace=5)
        counts.append(case.add("reduce", windowed, f="concat", materialized=STRINGS | {"store": f"{topic}-store"}))
    both = case.add("outer_join", counts[0], other=counts[1], f="pair")
    case.to(case.add("to_stream", both, key_f="key-text"), key="string")
    by_foreign_key = case.add(
        "join", counts[0], other=counts[1], f="pair", key_f="key", materialized={"value": "string"}
    )
    case.to(case.add("to_stream", by_foreign_key, key_f="key-text"), "out-2", key="string")
    for topic, time in [
        ("left", 1),
        ("right", 5),
        ("right", 12),
        ("left", 8),
        ("left", 13),
        ("right", 3),
        ("left", 40),
    ]:
        case.feed(topic, "k", f"{topic}{time}", time)


def foreign_keys_that_raise(case: Case) -> None:
    case.dead_letters = "dead-letters"
    left, right = case.table("left"), case.table("right")
    for number, op in enumerate(("join", "left_join")):
        joined = case.add(op, left, other=right, f="pair", key_f="fail:sea", materialized=STRINGS)
        case.to(case.add("to_stream", joined), f"out-{number}")
    case.feed("right", "s", "shore", 1)
    for time, value in enumerate(["sand", "sea", "surf", "sea", None]):
        case.feed("left", "k", value, 10 + time)


def a_table_joined_with_itself(case: Case) -> None:
    table = case.table("in")
    upper = case.add("map_values", table, f="upper")
    case.to(case.add("to_stream", case.add("join", table, other=upper, f="pair")), "out-1")
    case.to(case.add("to_stream", case.add("outer_join", upper, other=upper, f="pair")), "out-2")
    joined = case.add("left_join", table, other=table, f="pair", key_f="first-letter", materialized=STRINGS)
    case.to(case.add("to_stream", joined), "out-3")
    for time, (key, value) in enumerate([("a", "be"), ("b", "alpha"), ("b", "be"), ("a", None), ("b", None)]):
        case.feed("in", key, value, time)


def numbers_as_foreign_keys(case: Case) -> None:
    """The other table has keys of eight bytes, and hashes of values are those of numbers."""
    numbers, longs = {"key": "long", "value": "string"}, {"key": "string", "value": "long"}
    names = case.add("table", topic="names", consumed=numbers, materialized=numbers)
    orders = case.add("table", topic="orders", consumed=longs, materialized=longs)
    for op in ("join", "left_join"):
        joined = case.add(op, orders, other=names, f="right", key_f="number", materialized=STRINGS)
        case.to(case.add("to_stream", joined), f"out-{op}")
    for number, name in [("12345678", "Ann"), ("87654321", "Bob"), ("12345678", "Anna")]:
        case.feed("orders", name[:1], number, len(name))
        case.feed("names", number, name, 5)
    case.feed("orders", "A", None, 9)


HAND_MADE: dict[str, Callable[[Case], None]] = {
    build.__name__.replace("_", "-"): build
    for build in (
        word_count, lateness, late_left_matches_too, nothing_but_a_copy, several_topics, one_topic_twice,
        named_everything, a_name_for_the_group_only, no_names, one_group_counted_twice, rekeyed_once_used_twice,
        chained_aggregates, every_stream_join, named_stream_joins, joins_of_rekeyed_streams, three_way_join,
        table_join_of_a_rekeyed_stream, join_with_a_table_that_is_not_stored, global_tables, branches, merged_branches,
        dynamic_topics, repartitions, stream_to_table, tables_of_tables, out_of_order_table, grouped_table_every_way,
        every_window, final_results, windowed_join_then_count, processors_share_a_store, process_and_group,
        processor_api, a_stream_that_ends_nowhere, a_loop_of_topics, joined_windows, foreign_keys_that_raise,
        a_table_joined_with_itself, numbers_as_foreign_keys,
    )
}  # fmt: skip


def hand_made(name: str) -> Case:
    case = Case(name)
    HAND_MADE[name](case)
    return case
