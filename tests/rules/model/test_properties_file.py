"""Java's .properties format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.properties import parse_properties
from ottla.model.properties.file import format_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("  a \t=\t 1 ", {"a": "1 "}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a = = b", {"a": "= b"}),
        ("a==b", {"a": "=b"}),
        ("=v", {"": "v"}),
        ("# a=1\n! b=2\n\n c=3", {"c": "3"}),
        ("a=1 # no comment", {"a": "1 # no comment"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n   2,\\\n   3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("a=1\\", {"a": "1"}),
        ("# comment \\\na=1", {"a": "1"}),
        ("a\\ b\\=c\\:d=1", {"a b=c:d": "1"}),
        ("a=\\t\\n\\f\\r\\q\\\\", {"a": "\t\n\f\rq\\"}),
        ("a=\\u00e9\\uD83D\\uDE00", {"a": "é😀"}),
        ("path=C:\\\\data", {"path": "C:\\data"}),
        ("a=1\na=2", {"a": "2"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_bad_escape_is_reported_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"^line 2: \\u has to be followed by four hexadecimal digits, not '12'$"):
        parse_properties("a=1\nb=\\u12")


def escaped(text: str) -> str:
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


@given(st.dictionaries(st.text(), st.text(), max_size=4))
def test_what_is_written_with_escapes_reads_back(found: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(name)}={escaped(value)}" for name, value in found.items())
    assert parse_properties(text) == found


@given(st.dictionaries(st.from_regex(r"[a-z]+(\.[a-z]+)*", fullmatch=True), st.text()))
def test_what_we_write_reads_back(values: dict[str, str]) -> None:
    assert parse_properties(format_properties(values)) == values


@given(st.text(alphabet="ab=: #!\\\n\r\tu0"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_properties(text)
    except ValueError as error:
        assert str(error).startswith("line ")
