"""Nodes and expressions over Arrow columns: the same values as one record after the other gives."""

import math
from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from ottla.serdes.arrow import arrow_type
from ottla.serdes.base import Serde
from ottla.serdes.types import BINARY, BOOLEAN, DOUBLE, INT, LONG, STRING, Type
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped
from ottla.streams.expressions import Expression, Inputs, concat, key, length, lit, lower, partition, upper, value, when
from ottla.streams.expressions.vectors import VECTORS, why_no_vector
from ottla.streams.run.vectors import VectorChain, decoded, encoded, vector
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.failures import DESERIALIZATION_ERROR
from ottla.streams.tasks.inputs import INVALID_TIMESTAMP
from ottla.streams.tasks.operators.base import NO_KEY_FOR_REPARTITION, NULL_KEY
from ottla.streams.topology.graph import ProcessorNode, SourceNode

INT_MAX, LONG_MAX = (1 << 31) - 1, (1 << 63) - 1

TAME: dict[Type, list[Any]] = {
    STRING: ["", "a", "b", " a b ", "A, b", "a,", None],
    INT: [0, 1, -7, 1000, None],
    LONG: [0, 1, -7, 1 << 40, None],
    DOUBLE: [0.0, -0.0, 1.5, -2.5, math.inf, None],
    BOOLEAN: [True, False, None],
    BINARY: [b"", b"a", b"\xff", None],
}
"""Arrow treats them as we do."""
WILD: dict[Type, list[Any]] = {
    STRING: [
        "Straße",
        "ΣΊΣΥΦΟΣ",
        "\u0130",
        "\U0001f600",
        "12",
        "-7",
        "007",
        "1.5",
        "1e3",
        " 1",
        "+1",
        "9" * 19,
        "-0",
        "1\n",
        "a\vb\x1cc",
        "bb-a",
    ],
    INT: [INT_MAX, -INT_MAX - 1],
    LONG: [LONG_MAX, -LONG_MAX - 1, 1 << 53, (1 << 53) + 1],
    DOUBLE: [math.nan, -math.inf],
    BOOLEAN: [],
    BINARY: [],
}
NUMBERS = ["12", "-7", "007", "0", "-0", "123456789", None]
DECIMALS = ["1.5", "-0.25", "100", "123456789012345.123456789012345", None]
EXPRESSIONS: dict[str, list[tuple[Type, Expression]]] = {
    "eq": [(kind, key == value) for kind in TAME],
    "ne": [(kind, key != value) for kind in TAME],
    "lt": [(kind, key < value) for kind in TAME],
    "gt": [(kind, key > value) for kind in TAME],
    "le": [(kind, key <= value) for kind in TAME],
    "ge": [(kind, key >= value) for kind in TAME],
    "isin": [(STRING, value.isin("a", "12", key)), (DOUBLE, value.isin(1.5, key)), (LONG, value.isin(1, 2))],
    "is_null": [(kind, value.is_null()) for kind in TAME],
    "is_not_null": [(kind, value.is_not_null()) for kind in TAME],
    "and": [(BOOLEAN, key & value)],
    "or": [(BOOLEAN, key | value)],
    "not": [(BOOLEAN, ~value)],
    "add": [(kind, key + value) for kind in (INT, LONG, DOUBLE)],
    "sub": [(kind, key - value) for kind in (INT, LONG, DOUBLE)],
    "mul": [(kind, key * value) for kind in (INT, LONG, DOUBLE)],
    "coalesce": [(kind, key.coalesce(value)) for kind in TAME],
    "case": [
        (LONG, when(key > 0, value).when(value > 0, key).otherwise(0)),
        (BOOLEAN, when(key, value).otherwise(key)),
    ],
    "cast": [
        *((INT, value.cast(kind)) for kind in ("long", "double", "string")),
        *((LONG, value.cast(kind)) for kind in ("double", "string")),
        *((STRING, value.cast(kind)) for kind in ("int", "long", "double")),
    ],
    "lower": [(STRING, lower(value))],
    "upper": [(STRING, upper(value))],
    "trim": [(STRING, value.trim())],
    "length": [(STRING, length(value))],
    "contains": [(STRING, value.contains("a"))],
    "startswith": [(STRING, value.startswith("a"))],
    "endswith": [(STRING, value.endswith(" "))],
    "concat": [(STRING, concat(key, "-", value)), (STRING, concat(lit("a"), lit("b")))],
    "split": [
        (STRING, value.split(pattern)) for pattern in (" ", ", ", r"\W+", r"\s", r"[ ,a-f]+", r"[^\w1]", r"\S+a", "-a")
    ],
    "rlike": [(STRING, value.rlike(pattern)) for pattern in ("a", r"\d+,", r"\D", r"[A-Z]\w+", r"\s ", "b+")],
    "split_text": [(STRING, value.split_text(" "))],
}


def test_every_form_is_compared_here() -> None:
    assert EXPRESSIONS.keys() == VECTORS.keys()


@pytest.mark.parametrize(
    ("kind", "expression"),
    [pair for pairs in EXPRESSIONS.values() for pair in pairs],
    ids=[f"{name}-{kind}-{nth}" for name, pairs in EXPRESSIONS.items() for nth, (kind, _) in enumerate(pairs)],
)
def test_a_column_holds_what_the_body_gives_record_by_record(kind: Type, expression: Expression) -> None:
    bound = expression.bind({"key": kind, "value": kind})
    assert why_no_vector(bound) is None
    several = [TAME[kind], [*TAME[kind], *WILD[kind]], *([NUMBERS, DECIMALS] if kind == STRING else [])]
    for values in (*several, [None]):
        keys, others = zip(*product(values, values), strict=True)
        columns = {"key": pa.array(keys, arrow_type(kind)), "value": pa.array(others, arrow_type(kind))}
        found = vector(bound, columns.__getitem__, len(keys))
        expected = [bound.evaluator()(Inputs(first, second)) for first, second in zip(keys, others, strict=True)]
        assert list(map(repr, found.to_pylist())) == list(map(repr, expected))
        assert found.type == arrow_type(bound.type)


@pytest.mark.parametrize("serde", [Serdes.string, Serdes.bytes, Serdes.int, Serdes.long, Serdes.double])
def test_bytes_become_values_and_bytes_again_as_the_serde_has_it(serde: Serde[Any]) -> None:
    values = [*TAME[serde.type], *WILD[serde.type]]
    written = [serde.serialize(each) for each in values]
    for held in (written, [each for each in written if each is not None], []):
        # A slice of a column, as a filter may give it.
        found, readable = decoded(serde, pa.array([b"?", *held], pa.binary()).slice(1))
        assert list(map(repr, found.to_pylist())) == [repr(serde.deserialize(each)) for each in held]
        assert readable is None
        assert encoded(serde, found.drop_null()).to_pylist() == [each for each in held if each is not None]


def test_bytes_that_are_no_text_are_read_as_strings_are_wherever_they_are_read() -> None:
    found, _ = decoded(Serdes.string, pa.array([b"\xff", "ä".encode(), None], pa.binary()))
    assert found.to_pylist() == ["\N{REPLACEMENT CHARACTER}", "ä", None]


# ---- nodes


def batch(*records: tuple[bytes | None, bytes | None, int]) -> pa.RecordBatch:
    """(key, value, timestamp), from offset 40 on."""
    keys, values, times = zip(*records, strict=True)
    offsets = range(40, 40 + len(records))
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(["in"] * len(records)),
            "partition": pa.array([3] * len(records), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(times, pa.int64()),
            "origin": pa.array([offset << 1 for offset in offsets], pa.int64()),
        }
    )


def chain(build: Any = lambda stream: stream, serde: Serde[Any] = Serdes.string, **more: Any) -> VectorChain:
    builder = StreamsBuilder()
    serdes: Grouped[Any, Any] = Grouped(Serdes.string, serde)
    build(builder.stream("in", Consumed(Serdes.string, serde))).group_by_key(serdes).count()
    nodes = builder.build().with_default_serdes().sub_topologies()[0].nodes
    (source,) = [node for node in nodes if isinstance(node, SourceNode)]
    steps = tuple(node for node in nodes if isinstance(node, ProcessorNode) and not node.stores)
    bound = value.bind({"value": serde.type})
    settings = {"windowed": True, "fails": True, "skips_untimed": False, **more}
    return VectorChain(source, steps, Serdes.string, {"a0": bound}, **settings)


def rows(line: VectorChain, *batches: pa.RecordBatch) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    """(key, argument, time, offset, number), and what was left out."""
    dropped: Counter[str] = Counter()
    found = [row for each in line.run(iter(batches), dropped) for row in each.to_pylist()]
    return [tuple(row[name] for name in ("kb", "a0", "ts", "o", "origin")) for row in found], dict(dropped)


def test_records_are_filtered_mapped_and_multiplied() -> None:
    line = chain(
        lambda stream: (
            stream.filter(value != "no")
            .flat_map_values(value.split(" "))
            .map_values(concat(value, key))
            .filter_not(value.startswith("x"))
        )
    )
    found = rows(line, batch((b"k", b"a b", 5), (b"k", b"no", 6), (b"l", b"x c", 7), (b"l", None, 8)))
    assert found == ([(b"k", "ak", 5, 40, 80), (b"k", "bk", 5, 40, 80), (b"l", "cl", 7, 42, 84)], {})


def test_new_keys_are_those_of_the_record_behind_them_and_null_ones_are_left_out() -> None:
    new_key = when(value != "", concat(value, partition.cast("string"))).otherwise(None)
    line = chain(lambda stream: stream.select_key(new_key))
    found = rows(line, batch((None, b"a", 5), (b"k", b"", 6)))
    assert found == ([(b"a3", "a", 5, 40, 80)], {NO_KEY_FOR_REPARTITION: 1})
    assert rows(chain(), batch((None, b"a", 5))) == ([], {NULL_KEY: 1})


def test_what_cannot_be_read_is_an_error_that_names_the_record_or_is_left_out() -> None:
    bad = batch((b"k", bytes(8), 5), (b"k", b"seven", 6))
    with pytest.raises(ValueError, match=r"offset 41 of in-3 cannot be read: Serdes\.long: 8 bytes expected, found"):
        rows(chain(serde=Serdes.long), bad)
    assert rows(chain(serde=Serdes.long, fails=False), bad) == ([(b"k", 0, 5, 40, 80)], {DESERIALIZATION_ERROR: 1})


def test_a_timestamp_below_zero_is_an_error_that_names_the_record_or_is_skipped() -> None:
    bad = batch((b"k", b"a", 5), (b"k", b"b", -1))
    with pytest.raises(ValueError, match="offset 41 of in-3 has the invalid timestamp: -1"):
        rows(chain(), bad)
    assert rows(chain(skips_untimed=True), bad) == ([(b"k", "a", 5, 40, 80)], {INVALID_TIMESTAMP: 1})
