"""kio, an independent implementation of the same schemas, writes what we write and reads what we write.

Values are drawn from kio's own dataclasses, one per message and version, so the test knows nothing of our generator.
"""

import dataclasses
import datetime
import io
import uuid
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kio.index import load_entity_module
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from ottla.protocol import messages
from ottla.protocol.codec import Message, Struct

PAIRS = [
    (name, version, kind)
    for name, versions in schema_name_map.items()
    for version, kinds in versions.items()
    for kind in kinds
]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def signed(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return st.one_of(st.sampled_from((0, 1, -1, low, high)), st.integers(low, high))


def milliseconds(bits: int) -> st.SearchStrategy[datetime.timedelta]:
    most = min((1 << bits - 1) - 1, 86_400_000 * 100_000)
    return st.integers(-most, most).map(lambda ms: datetime.timedelta(milliseconds=ms))


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": signed(8),
    "int16": signed(16),
    "int32": signed(32),
    "int64": signed(64),
    "uint16": st.integers(0, 65535),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.one_of(st.text(max_size=12), st.just("é" * 70)),
    "bytes": st.one_of(st.binary(max_size=12), st.just(b"\0" * 200)),
    "records": st.one_of(st.binary(max_size=80), st.just(b"r" * 20_000)),
    "uuid": st.uuids().filter(lambda value: value.int > 0),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": milliseconds(32),
    "timedelta_i64": milliseconds(50),
    "datetime_i64": st.integers(0, 4_000_000_000_000).map(lambda ms: EPOCH + datetime.timedelta(milliseconds=ms)),
}


def without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (UnionType, Union) and NoneType in get_args(hint):
        rest = [arg for arg in get_args(hint) if arg is not NoneType]
        return Union[tuple(rest)], True  # noqa: UP007
    return hint, False


def is_entity(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint)


def field_strategy(field: dataclasses.Field[Any], hint: Any) -> st.SearchStrategy[Any]:
    inner, nullable = without_none(hint)
    if get_origin(inner) is tuple:
        element, _ = without_none(get_args(inner)[0])
        one = strategy(element) if is_entity(element) else SCALARS[field.metadata["kafka_type"]]
        made: st.SearchStrategy[Any] = st.lists(one, max_size=3).map(tuple)
    elif is_entity(inner):
        made = strategy(inner)
    else:
        made = SCALARS[field.metadata["kafka_type"]]
    return st.none() | made if nullable else made


@cache
def strategy(cls: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls)
    return st.builds(cls, **{f.name: field_strategy(f, hints[f.name]) for f in dataclasses.fields(cls)})


def our_name(struct: Struct, theirs: str) -> str:
    """kio strips the unit from times, reads KRaft as two words and keeps away from builtins."""
    plain = theirs.replace("k_raft", "kraft").rstrip("_")
    return plain if plain in struct.FIELDS else plain + "_ms"


def as_ours(value: Any) -> Any:
    if isinstance(value, tuple):
        return [as_ours(item) for item in value]
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, ErrorCode):
        return value.value
    return value


def assert_same(theirs: Any, ours: Any) -> None:
    if isinstance(ours, list):
        assert len(theirs) == len(ours)
        for one, other in zip(theirs, ours, strict=True):
            assert_same(one, other)
    elif isinstance(ours, Struct):
        for field in dataclasses.fields(theirs):
            assert_same(getattr(theirs, field.name), getattr(ours, our_name(ours, field.name)))
    elif theirs is None and ours is not None:
        assert ours in (bytes(16), -1), "kio reads a zero uuid and a time of -1 as None"
    else:
        assert as_ours(theirs) == ours


def entity_of(name: str, version: int, kind: EntityType) -> tuple[Any, type[Message]]:
    module = load_entity_module(name, version, kind)  # type: ignore[arg-type]
    classes = [c for c in vars(module).values() if isinstance(c, type) and getattr(c, "__type__", None) == kind]
    (theirs,) = [c for c in classes if c.__module__ == module.__name__]
    return theirs, messages.named(theirs.__name__)


@pytest.mark.parametrize(("name", "version", "kind"), PAIRS, ids=[f"{n}-v{v}-{k.name}" for n, v, k in PAIRS])
def test_both_write_the_same_bytes_and_read_the_same_values(name: str, version: int, kind: EntityType) -> None:
    theirs, ours = entity_of(name, version, kind)
    write, read = entity_writer(theirs), entity_reader(theirs)

    @settings(
        max_examples=4,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy(theirs))
    def check(value: Any) -> None:
        buffer = io.BytesIO()
        write(buffer, value)
        wire = buffer.getvalue()
        message, end = ours.DECODERS[version](wire, 0)
        assert end == len(wire)
        assert_same(value, message)
        assert message.encode(version) == wire
        again, size = read(message.encode(version), 0)
        assert size == len(wire)
        assert again == value

    check()
