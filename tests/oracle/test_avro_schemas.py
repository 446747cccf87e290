"""Java Avro 1.12.1 beside ours, over schemas that nobody wrote: texts, refusals, verdicts and where they were found."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.registry.schemas.avro import Avro, AvroSchema
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Difference, InvalidSchema
from tests.oracle.avro_schemas import evolved, schema
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


def _asked(java: Dialogue, reader: Any, writer: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        java.ask(json.dumps({"reader": json.dumps(reader), "writer": json.dumps(writer)}))
    )
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
