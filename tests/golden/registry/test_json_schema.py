"""Canonical and normalised texts that Confluent's registry gave, and those of ours."""

import json
from pathlib import Path

import pytest

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.registry.schemas.json_schema import JSON_SCHEMA

EXAMPLES = json.loads((Path(__file__).parent / "json_schema.json").read_text())["examples"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["input"][:40])
def test_texts_are_confluents_to_the_byte(example: dict[str, str]) -> None:
    schema = JSON_SCHEMA.parse(example["input"], [], Budget(DEFAULT_STEPS), new=True)
    assert schema.text == example["stored"]
    assert schema.normalized().text == example["normalized"]
    again = JSON_SCHEMA.parse(schema.text, [], Budget(DEFAULT_STEPS), new=False)
    assert again == schema
    assert schema.formatted("resolved") == schema.text
