"""Every message in every version, beside what Apache Kafka 4.3.1 itself wrote (see Corpus.java).

The corpus is also the seed of the rules that need a well-formed message of each kind: truncation, unknown tags.
"""

import base64
import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.model.ids import uuid_text
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError, Message, Struct

NEWER = {("ApiVersionsRequest", 5), ("ApiVersionsResponse", 5)}
"""What 4.3.1 does not have."""


class Sample(NamedTuple):
    version: int
    variant: str
    wire: bytes
    values: Any


@cache
def corpus() -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = defaultdict(list)
    with gzip.open(Path(__file__).parent / "messages.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            name = raw["name"] if raw["name"] in messages.NAMES else raw["name"].removesuffix("Data")
            wire = base64.b64decode(raw["bytes"])
            found[name].append(Sample(raw["version"], raw["variant"], wire, raw.get("values")))
    return found


NAMES = sorted(messages.NAMES)


def samples(name: str, *variants: str) -> list[tuple[type[Message], Sample]]:
    return [(messages.named(name), sample) for sample in corpus()[name] if sample.variant in variants]


def test_the_corpus_has_every_message_and_version() -> None:
    ours = {(name, version) for name in NAMES for version in messages.named(name).DECODERS}
    theirs = {(name, sample.version) for name, found in corpus().items() for sample in found}
    assert ours - NEWER == theirs


@pytest.mark.parametrize("name", NAMES)
def test_what_kafka_wrote_is_read_to_the_end_and_written_back_the_same(name: str) -> None:
    for cls, sample in samples(name, "default", "full", "null"):
        message, end = cls.DECODERS[sample.version](sample.wire, 0)
        assert end == len(sample.wire)
        assert message.encode(sample.version) == sample.wire


@pytest.mark.parametrize("name", NAMES)
def test_a_new_message_has_kafkas_defaults(name: str) -> None:
    for cls, sample in samples(name, "default"):
        assert cls().encode(sample.version) == sample.wire


@pytest.mark.parametrize("name", NAMES)
def test_each_field_holds_the_value_that_kafka_names(name: str) -> None:
    for cls, sample in samples(name, "full", "null"):
        assert_same(sample.values, cls.decode(sample.wire, sample.version))


def assert_same(theirs: Any, ours: Any) -> None:
    if isinstance(ours, Struct):
        fields = {field.replace("_", ""): field for field in ours.FIELDS}
        for name, value in theirs.items():
            if name.lower() in fields:
                assert_same(value, getattr(ours, fields[name.lower()]))
            else:
                assert name.endswith("SizeInBytes"), name
    elif isinstance(ours, list):
        assert len(theirs) == len(ours)
        for one, other in zip(theirs, ours, strict=True):
            assert_same(one, other)
    elif isinstance(ours, memoryview):
        assert theirs == "", "Kafka's JSON leaves records out"
    elif isinstance(ours, bytes):
        assert theirs in (uuid_text(ours), base64.b64encode(ours).decode())
    else:
        assert theirs == ours


@pytest.mark.parametrize("name", NAMES)
def test_kip_482_unknown_tags_are_skipped_in_every_struct(name: str) -> None:
    plain = {sample.version: sample.wire for _, sample in samples(name, "full")}
    for cls, sample in samples(name, "tags"):
        message, end = cls.DECODERS[sample.version](sample.wire, 0)
        assert end == len(sample.wire) > len(plain[sample.version])
        assert message.encode(sample.version) == plain[sample.version]


@pytest.mark.parametrize("name", NAMES)
def test_a_message_cut_at_any_byte_is_refused(name: str) -> None:
    for cls, sample in samples(name, "full", "tags"):
        decode = cls.DECODERS[sample.version]
        view = memoryview(sample.wire)
        for cut in range(0, len(view), 1 if len(view) < 600 else 7):
            with pytest.raises(DecodeError):
                decode(view[:cut], 0)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_after_a_message_are_left_alone(name: str) -> None:
    for cls, sample in samples(name, "full"):
        message, end = cls.DECODERS[sample.version](b"before" + sample.wire + b"after", 6)
        assert end == 6 + len(sample.wire)
        assert message == cls.decode(sample.wire, sample.version)


@pytest.mark.parametrize("name", NAMES)
def test_any_kind_of_buffer_will_do(name: str) -> None:
    for cls, sample in samples(name, "full"):
        message = cls.decode(sample.wire, sample.version)
        assert cls.decode(bytearray(sample.wire), sample.version) == message
        assert cls.decode(memoryview(sample.wire), sample.version) == message
