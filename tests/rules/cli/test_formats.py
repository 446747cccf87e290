"""What `-f` prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.formats import BadFormat, Format, Formatted
from ottla.protocol.records import Record

RECORD = Record(42, 1_700_000_000_123, b"key", b"va\xfflue", (("a", b"1"), ("b", None)))
FORMATTED = Formatted("orders", 3, RECORD, leader_epoch=5, high_watermark=99, log_start_offset=7, number=2)
NULLS = Formatted("orders", 0, Record(0, -1, None, None))


@pytest.mark.parametrize(
    ("modifier", "value", "printed"),
    [
        ("int", b"\0\0\0\x2a", b"42"),
        ("long", b"\xff" * 8, b"-1"),
        ("double", b"\x3f\xf8\0\0\0\0\0\0", b"1.5"),
        ("long", b"\0\x2a", b"002a"),
        ("long", None, b""),
    ],
)
def test_numbers_of_javas_serializers_are_read_and_other_bytes_shown_in_hex(
    modifier: str, value: bytes | None, printed: bytes
) -> None:
    assert Format(f"%v{{{modifier}}}").render(Formatted("t", 0, Record(0, 0, None, value))) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", b""),
        ("plain", b"plain"),
        ("%t %p %o", b"orders 3 42"),
        (r"%k=%v\n", b"key=va\xfflue\n"),
        ("%s", b"va\xfflue"),
        ("%K %V %S %H %e %i %[ %]", b"3 6 6 2 5 2 7 99"),
        ("%T %d", b"1700000000123 1700000000123"),
        ("%T{iso}", b"2023-11-14T22:13:20.123Z"),
        ("%d{strftime[%H:%M:%S]}", b"22:13:20"),
        ("%h", b"a=1,b="),
        ("%h{%k:%v;}", b"a:1;b:;"),
        ("%h{%k{hex} %V }", b"61 1 62 -1 "),
        ("%v{hex} %k{base64}", b"7661ff6c7565 a2V5"),
        ("%k{json} %k{repr}", b"\"key\" b'key'"),
        ("%p{hex} %o{big16}", b"3 \x00\x2a"),
        ("%o{little32}", b"\x2a\0\0\0"),
        ("100%% %{x%}", b"100% {x}"),
        (r"\t\r\\\x41\0", b"\t\r\\A\0"),
        ("é%t", "éorders".encode()),
    ],
)
def test_each_escape_prints_its_fact(text: str, printed: bytes) -> None:
    assert Format(text).render(FORMATTED) == printed


def test_null_is_nothing_as_text_and_told_apart_by_length_json_and_repr() -> None:
    assert Format("[%k|%v|%h]").render(NULLS) == b"[||]"
    assert Format("%K %V %v{json} %v{repr} %v{hex}").render(NULLS) == b"-1 -1 null None "
    assert Format("%T{iso}").render(NULLS) == b"-"


@pytest.mark.parametrize(
    "text",
    ["%", "%z", "%v{nonsense}", "%p{base64}", "%T{year}", r"\q", r"\x4", r"\xzz", "\\", "%h{%t}", "%h{%k", "%v{hex"],
)
def test_a_wrong_format_is_refused_before_anything_is_read(text: str) -> None:
    with pytest.raises(BadFormat):
        Format(text)


@given(st.text(alphabet="%tpokvhTHKVi{}[]\\nx4a ", max_size=16))
def test_every_text_is_a_format_or_refused(text: str) -> None:
    try:
        compiled = Format(text)
    except BadFormat:
        return
    assert isinstance(compiled.render(FORMATTED), bytes)
    assert isinstance(compiled.render(NULLS), bytes)
