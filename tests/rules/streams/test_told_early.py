"""What would fail at the first record is told when the topology is built, and by `describe` and `explain`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import (
    Consumed,
    JoinWindows,
    KStream,
    Materialized,
    Produced,
    Serdes,
    StreamsApp,
    StreamsBuilder,
    TopologyError,
)
from ottla.streams.expressions import left, right, struct, sum_, value

ORDERS = Consumed(Serdes.string, Serdes.json("name string, amount double, tags array<string>"))


def orders(builder: StreamsBuilder) -> KStream[Any, Any]:
    return builder.stream("orders", ORDERS)


one: Any = lambda value: value  # noqa: E731  mypy would tell as well
two: Any = lambda key, value: value  # noqa: E731

WRONG_PARAMETERS: list[tuple[Callable[[KStream[Any, Any]], object], str]] = [
    (lambda s: s.filter(one), r"the predicate of filter is called with \(key, value\), but takes \(value\)"),
    (lambda s: s.filter_not(one), "the predicate of filter_not"),
    (lambda s: s.map(one), "the function of map "),
    (lambda s: s.map_values(two), r"the function of map_values is called with \(value\)"),
    (lambda s: s.map_values(one, with_key=True), r"the function of map_values is called with \(key, value\)"),
    (lambda s: s.flat_map_values(two), "the function of flat_map_values"),
    (lambda s: s.flat_map(one), "the function of flat_map"),
    (lambda s: s.select_key(one), "the function of select_key"),
    (lambda s: s.group_by(one), "the function of group_by"),
    (lambda s: s.peek(one), "the function of peek"),
    (lambda s: s.foreach(one), "the function of foreach"),
    (lambda s: s.split().branch(one), "the predicate of branch"),
    (lambda s: s.to(two), r"the topic of to is called with \(key, value, metadata\)"),
    (lambda s: s.join(s, one, JoinWindows.of(1, grace_ms=0)), r"the joiner of join is called with \(left, right\)"),
    (lambda s: s.group_by_key().reduce(one), r"the reducer is called with \(aggregate, value\)"),
    (lambda s: s.group_by_key().aggregate(one, two), r"the initializer of aggregate is called with \(\)"),
    (lambda s: s.group_by_key().aggregate(dict, two), r"the aggregator of aggregate is called with \(key, value, ag"),
    (lambda s: s.to_table().filter(one), "the predicate of filter"),
    (lambda s: s.to_table().map_values(two), "the function of map_values"),
    (lambda s: s.to_table().group_by(one), "the selector of group_by"),
]


@pytest.mark.parametrize(("build", "message"), WRONG_PARAMETERS, ids=[each[1] for each in WRONG_PARAMETERS])
def test_a_function_with_other_parameters_is_refused_where_it_is_said(
    build: Callable[[KStream[Any, Any]], object], message: str
) -> None:
    with pytest.raises(TopologyError, match=message):
        build(orders(StreamsBuilder()))


def test_the_refusal_says_where_the_function_is() -> None:
    with pytest.raises(TopologyError, match=r"but takes \(value\) \(test_told_early.py, line \d+\)"):
        orders(StreamsBuilder()).filter(one)


@pytest.mark.parametrize("function", [print, lambda *args: True, lambda key, value, more=1: True, dict.get])
def test_a_function_that_can_be_called_so_is_taken(function: Callable[..., Any]) -> None:
    orders(StreamsBuilder()).filter(function)


MISSPELLED: list[tuple[Callable[[KStream[Any, Any]], object], str]] = [
    (lambda s: s.filter(value["amuont"] > 5),
     "KSTREAM-FILTER-0000000001: value[\"amuont\"]: there is no field 'amuont'; do"),
    (lambda s: s.map_values(value["nmae"].lower()), "KSTREAM-MAPVALUES-0000000001: value[\"nmae\"]: there is no field"),
    (lambda s: s.map_values(struct(n=value["name"])).filter(value["name"] == "x"), "there is no field 'name'; there"),
    (lambda s: s.select_key(value["id"]), "there is no field 'id'"),
    (lambda s: s.split().branch(value["id"] == 1), "there is no field 'id'"),
    (lambda s: s.to(value["topic"]), "KSTREAM-SINK-0000000001: value[\"topic\"]: there is no field 'topic'"),
    (lambda s: s.group_by_key().aggregate(sum_(value["amont"])), "do you mean 'amount'?"),
    (lambda s: s.join(s, struct(a=left["name"], b=right["nam"]), JoinWindows.of(1, grace_ms=0)), "do you mean 'name'?"),
    (lambda s: s.to_table().filter(value["nam"] == "x"), "do you mean 'name'?"),
    (lambda s: s.filter(value["name"] > 5), "string and int do not go together"),
    (lambda s: s.flat_map_values(value["tag"]), "do you mean 'tags'?"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "message"), MISSPELLED, ids=[each[1] for each in MISSPELLED])
def test_a_misspelled_field_is_told_when_the_topology_is_built(
    build: Callable[[KStream[Any, Any]], object], message: str
) -> None:
    builder = StreamsBuilder()
    build(orders(builder))
    with pytest.raises(TopologyError) as caught:
        builder.build()
    assert message in str(caught.value)


APP = """from ottla.streams import Consumed, Serdes, StreamsApp, StreamsBuilder
from ottla.streams.expressions import value
builder = StreamsBuilder()
orders = builder.stream("orders", Consumed(Serdes.string, Serdes.json("name string, amount double")))
{line}
app = StreamsApp("orders", builder.build())
"""
ASK = "import sys; from ottla.cli.app import run; print(run(sys.argv[1:]), 'pyspark' in sys.modules)"


@pytest.mark.parametrize("command", ["describe", "explain"])
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "orders.filter(lambda v: v['amount'] > 5)",
            "line 5: TopologyError: the predicate of filter is called with (key, value), but takes (v)",
        ),
        ("orders.filter(value['amuont'] > 5)", "there is no field 'amuont'; do you mean 'amount'?"),
    ],
)
def test_both_are_told_by_describe_and_explain_without_spark(
    tmp_path: Path, command: str, line: str, says: str
) -> None:
    file = tmp_path / "my_app.py"
    file.write_text(APP.format(line=line))
    done = subprocess.run(
        [sys.executable, "-c", ASK, "streams", command, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 False\n"
    assert done.stderr.startswith(f"ottla: {file}, line ") and says in done.stderr


def test_what_a_default_serde_decides_is_told_with_the_application() -> None:
    builder = StreamsBuilder()
    builder.stream("orders").filter(value["amuont"] > 5).to("big")
    topology = builder.build()
    with pytest.raises(TopologyError, match="do you mean 'amount'"):
        StreamsApp("a", topology, **{"default.value.serde": Serdes.json("amount double")})
    StreamsApp("b", topology, **{"default.value.serde": Serdes.json()})


def test_a_topology_whose_serdes_nobody_said_is_described_all_the_same() -> None:
    builder = StreamsBuilder()
    builder.stream("orders").map_values(lambda text: text).group_by_key().count(Materialized("n")).to_stream().to("n")
    assert "KSTREAM-MAPVALUES-0000000001" in StreamsApp("c", builder.build()).topology.describe()


def test_a_right_topology_is_left_alone() -> None:
    builder = StreamsBuilder()
    orders(builder).filter(value["amount"] > 5).map_values(value["name"]).to(
        "names", Produced(Serdes.string, Serdes.string)
    )
    assert StreamsApp("d", builder.build()).topology.describe()


@pytest.mark.parametrize("package", ["ottla.streams", "ottla.streams.expressions"])
def test_a_star_import_gives_the_public_names(package: str) -> None:
    code = (
        f"from {package} import *; import {package} as p, sys; "
        "print([n for n in p.__all__ if n not in globals()], 'pyspark' in sys.modules, len(p.__all__) > 40)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False True\n"
