"""Java Avro 1.12.1 beside ours, over schemas that nobody wrote: texts, refusals, verdicts and where they were found."""

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.registry.schemas.avro import Avro, AvroSchema
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Difference, InvalidSchema
from ottla.serdes.avro.binary import Binary
from ottla.serdes.avro.reading import Form, NotOfReader, conversion
from ottla.serdes.avro.writing import writing
from ottla.serdes.base import SerdeError
from tests.oracle.avro_schemas import evolved, has_twins, schema, value_of
from tests.support import jvm
from tests.support.programs import Dialogue

SOURCES = Path(__file__).parent / "avro"
PAIRS = 2000

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def java() -> Iterator[Dialogue]:
    jars = jvm.jars_of("avro-oracle", SOURCES / "pom.xml")
    classes = jvm.compiled(jars, SOURCES / "AvroOracle.java")
    dialogue = Dialogue("Java Avro", jvm.java(jars, "AvroOracle", classes=classes))
    yield dialogue
    dialogue.close()


def test_texts_refusals_and_verdicts_are_javas(java: Dialogue) -> None:
    counts = dict.fromkeys(("refused", "compatible", "incompatible"), 0)
    for seed in range(PAIRS):
        dice = random.Random(seed)
        writer = schema(dice)
        reader = evolved(writer, dice) if dice.random() < 0.85 else schema(dice)
        answer = _asked(java, reader, writer)
        ours = _parsed(reader), _parsed(writer)
        shown = f"seed {seed}: {json.dumps({'reader': reader, 'writer': writer})}\nJava: {answer}"
        assert [each and each.text for each in ours] == [answer["reader"], answer["writer"]], shown
        if ours[0] is None or ours[1] is None:
            counts["refused"] += 1
            continue
        found = [_told(each) for each in ours[0].reading(ours[1], "STRICT", Budget(DEFAULT_STEPS))]
        assert found == answer["differences"], shown
        counts["incompatible" if found else "compatible"] += 1
    assert min(counts.values()) > PAIRS // 20, counts


def test_what_one_schema_wrote_another_reads_as_in_java(java: Dialogue) -> None:
    counts = dict.fromkeys(("read", "unreadable", "read by us alone"), 0)
    for seed in range(PAIRS):
        dice = random.Random(seed)
        writer = schema(dice)
        reader = evolved(writer, dice)
        ours = _parsed(reader), _parsed(writer)
        if ours[0] is None or ours[1] is None or has_twins(ours[1].root):
            continue
        if '"other.' in json.dumps(reader):
            continue  # Java overlooks the aliases of fields if the namespace of their record has changed
        try:
            made = Binary(ours[1].root).write(value_of(ours[1].root, dice))
            found = _evolved(ours[1], ours[0], made)
        except SerdeError:
            continue  # an array of nothing, which we do not read; or no value has an end
        answer = _asked(java, reader, writer, made)
        if ["EXCEPTION"] in [each[:1] for each in answer["differences"]]:
            continue  # an alias that fits two fields
        shown = f"seed {seed}: {json.dumps({'reader': reader, 'writer': writer})}\n{made.hex()}\nJava: {answer}"
        expected = None if answer["read"] is None else base64.b64decode(answer["read"])
        # What Java calls compatible is read, by us more than by Java: an enum of another namespace stops it, or an
        # alias that two types have. What both read is the same.
        assert found is not None or answer["differences"], shown
        assert found == expected or None in (found, expected), shown
        counts["unreadable" if found is None else "read" if expected is not None else "read by us alone"] += 1
    assert counts["read"] > PAIRS // 3 and counts["read by us alone"] < PAIRS // 20 < counts["unreadable"], counts


def _evolved(writer: AvroSchema, reader: AvroSchema, data: bytes) -> bytes | None:
    """What the reader would write after it has read it."""
    binary = Binary(writer.root)
    convert = conversion(writer.root, reader.root, Form(for_columns=False, members=True), named=binary.named)
    read = binary.read(data, 0)
    try:
        value = read if convert is None else convert(read)
    except NotOfReader:
        return None
    return Binary(reader.root).write(writing(reader.root, members=True)(value))


def _asked(java: Dialogue, reader: Any, writer: Any, data: bytes | None = None) -> dict[str, Any]:
    question = {"reader": json.dumps(reader), "writer": json.dumps(writer)}
    if data is not None:
        question["data"] = base64.b64encode(data).decode()
    answer: dict[str, Any] = json.loads(java.ask(json.dumps(question)))
    return answer


def _parsed(given: Any) -> AvroSchema | None:
    try:
        return Avro().parse(json.dumps(given), (), Budget(DEFAULT_STEPS), new=True)
    except InvalidSchema:
        return None


def _told(found: Difference) -> list[str]:
    if found.code == "AMBIGUOUS_ALIAS":
        return ["EXCEPTION", "", found.text.removeprefix("Unexpected exception during compatibility check: ")]
    return [found.code, found.path, found.text.rpartition("additionalInfo:'")[2].removesuffix("'}")]
