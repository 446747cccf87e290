"""Every rule of the languages as a sequence of versions, through the machine at all seven levels.

The second version changes the first as the rule says, and was taken when nobody asked. The third only adds to it what
both ways read. So the levels that look at the latest take the third, whatever happened before; the transitive ones find
the change again, from the third to the first.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.registry.languages import LANGUAGES
from ottla.registry.machine import commands as c
from ottla.registry.machine.machine import Machine
from ottla.registry.machine.refusals import Refusal
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from tests.rules.registry.avro.test_compatibility import COMPATIBLE as AVRO_COMPATIBLE
from tests.rules.registry.avro.test_compatibility import INCOMPATIBLE as AVRO_INCOMPATIBLE
from tests.rules.registry.json_schema.cases import CASES
from tests.rules.registry.protobuf.test_compatibility import COMPATIBLE, INCOMPATIBLE_CHANGES
from tests.rules.registry.scene import Scene, register

Versions = tuple[str, str, str, str, str]
"""The rule, the language and three texts."""


def json_rules() -> Iterator[Versions]:
    for case in CASES:
        if isinstance(case.reader, dict):
            further = {**case.reader, "$comment": "the same"}
            yield case.code, "JSON", json.dumps(case.writer), json.dumps(case.reader), json.dumps(further)


def protobuf_rules() -> Iterator[Versions]:
    for code, old, new in [*COMPATIBLE, *((code, old, new) for code, _, old, new in INCOMPATIBLE_CHANGES)]:
        yield code, "PROTOBUF", old.text, new.text, f"{new.text}\nenum Further {{ FURTHER_ZERO = 0; }}"


def avro_rules() -> Iterator[Versions]:
    def inside(of: Any, **more: str) -> str:
        return json.dumps({"type": "record", "name": "Around", "fields": [{"name": "f", "type": of}], **more})

    pairs = [("READ", *pair) for pair in AVRO_COMPATIBLE]
    for code, reader, writer in [*pairs, *((each.code, reader, writer) for reader, writer, each in AVRO_INCOMPATIBLE)]:
        yield code, "AVRO", inside(writer), inside(reader), inside(reader, doc="the same")


RULES = [*avro_rules(), *json_rules(), *protobuf_rules()]


def reads(language: str, reader: str, writer: str) -> bool:
    parse = LANGUAGES[language]().parse
    new, old = (parse(text, (), Budget(DEFAULT_STEPS), new=True) for text in (reader, writer))
    return not new.reading(old, "STRICT", Budget(DEFAULT_STEPS))


@pytest.mark.parametrize(
    ("rule", "language", "first", "second", "third"), RULES, ids=[f"{each[1]}-{each[0]}" for each in RULES]
)
def test_levels_that_are_not_transitive_forget_what_those_that_are_remember(
    rule: str, language: str, first: str, second: str, third: str
) -> None:
    scene = Scene(Machine(LANGUAGES))
    scene.tell(c.PutConfig("", {"compatibility_level": "NONE"}))
    scene.register("s", first, schema_type=language)
    scene.register("s", second, schema_type=language)
    backward, forward = reads(language, third, first), reads(language, first, third)
    assert reads(language, second, first) == backward
    expected = {"NONE": True, "BACKWARD": True, "FORWARD": True, "FULL": True}
    expected |= {"BACKWARD_TRANSITIVE": backward, "FORWARD_TRANSITIVE": forward}
    expected |= {"FULL_TRANSITIVE": backward and forward}
    found = {}
    for level in expected:
        scene.tell(c.PutConfig("", {"compatibility_level": level}))
        found[level] = not isinstance(scene.machine.decide(register("s", third, schema_type=language)).reply, Refusal)
    assert found == expected
