"""kafka-python reads what we write and writes it back unchanged, for every message and version that both know.

Values are drawn from the structure that kafka-python holds for a version and put into our classes.
"""

import uuid
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ottla.protocol import messages
from ottla.protocol.codec import Message, Struct

with warnings.catch_warnings():
    # kafka-python reads its schemas by a call that Python 3.11 deprecates (and 3.13 kept after all).
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol import admin, consumer, metadata, producer, sasl
    from kafka.protocol.api_message import ApiMessage


def is_message(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, ApiMessage) and item is not ApiMessage


def known() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in (admin, consumer, metadata, producer, sasl):
        items: list[Any] = list(vars(module).values())
        for item in items:
            if is_message(item):
                found[item.name] = item
    return found


KNOWN = known()
PAIRS = [
    (name, version)
    for name in sorted(KNOWN)
    for version in messages.named(name).DECODERS
    if version <= KNOWN[name].max_version
]


def signed(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return st.one_of(st.sampled_from((0, 1, -1, low, high)), st.integers(low, high))


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": signed(8),
    "int16": signed(16),
    "int32": signed(32),
    "bitfield": signed(32),
    "int64": signed(64),
    "uint16": st.integers(0, 65535),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.one_of(st.text(max_size=12), st.just("é" * 70)),
    "bytes": st.one_of(st.binary(max_size=12), st.just(b"\0" * 200)),
    "records": st.one_of(st.binary(min_size=1, max_size=80), st.just(b"r" * 200)),
    "uuid": st.binary(min_size=16, max_size=16).filter(any),
}


def our_name(cls: type[Struct], theirs: str) -> str:
    """kafka-python puts an underscore before every capital, and its authorized operations go by one name everywhere."""
    plain = theirs.replace("_", "")
    exact = [name for name in cls.FIELDS if name.replace("_", "") == plain]
    return exact[0] if exact else next(name for name in cls.FIELDS if name.endswith("_" + theirs))


def struct_strategy(cls: type[Struct], top: type[Message], fields: Any, version: int) -> st.SearchStrategy[Any]:
    here = [field for field in fields.values() if field.for_version_q(version)]
    drawn = {our_name(cls, f.name): field_strategy(f, top, version) for f in here}
    if cls is messages.ApiVersionsResponse:
        drawn["error_code"] = st.just(0)  # with an error, kafka-python reads any version as version 0
    return st.builds(cls, **drawn)


def field_strategy(field: Any, top: type[Message], version: int) -> st.SearchStrategy[Any]:
    made: st.SearchStrategy[Any]
    if field.is_struct() or field.is_struct_array():
        cls = getattr(top, field.type_str.removeprefix("[]"))
        made = struct_strategy(cls, top, field.fields, version)
        made = st.lists(made, max_size=3) if field.is_struct_array() else made
    elif field.is_array():
        made = st.lists(SCALARS[field.array_of.type_str], max_size=3)
    else:
        made = SCALARS[field.type_str]
    return st.none() | made if field.nullable_for_version_q(version) else made


def assert_same(theirs: Any, ours: Any, version: int) -> None:
    if isinstance(ours, list):
        assert len(theirs) == len(ours)
        for one, other in zip(theirs, ours, strict=True):
            assert_same(one, other, version)
    elif theirs is None and isinstance(ours, Struct):
        assert ours == type(ours)(), "a tagged struct that is not sent is its default for us, None for kafka-python"
    elif isinstance(ours, Struct):
        for field in type(theirs).fields.values():
            if field.for_version_q(version) and field.type_str != "bitfield":
                name = our_name(type(ours), field.name)
                assert_same(getattr(theirs, field.name), getattr(ours, name), version)
    else:
        assert (theirs.bytes if isinstance(theirs, uuid.UUID) else theirs) == ours


@pytest.mark.parametrize(("name", "version"), PAIRS, ids=[f"{name}-v{version}" for name, version in PAIRS])
def test_it_reads_our_bytes_and_writes_them_back(name: str, version: int) -> None:
    theirs, ours = KNOWN[name], messages.named(name)

    @settings(
        max_examples=3,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(struct_strategy(ours, ours, theirs._struct.fields, version))
    def check(message: Message) -> None:
        wire = message.encode(version)
        assert ours.decode(wire, version) == message
        read = theirs.decode(wire, version=version)
        assert_same(read, message, version)
        read._header = None
        assert bytes(read.encode(version=version)) == wire

    check()
