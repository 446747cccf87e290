"""The lines of a users file: what is written is read, and what cannot be read is told without its secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.registry.doors.cluster_logins import subject
from ottla.registry.doors.users_file import line, parsed


def test_a_line_lets_in_who_knows_the_password_and_does_not_hold_it() -> None:
    text = line("alice", "open sesame", b"0123456789abcdef")
    assert text.startswith("alice:SCRAM-SHA-512$16384:MDEyMzQ1Njc4OWFiY2RlZg==$")
    assert "sesame" not in text
    users = parsed(f"# users\n\n{text}\n")
    assert list(users) == ["alice"]
    assert users["alice"].fits("open sesame")
    assert not users["alice"].fits("open Sesame")


@pytest.mark.parametrize("name", ["", "a:b", "#a", " a", "a\nb"])
def test_a_name_that_would_be_read_as_something_else_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a user"):
        line(name, "x", b"salt")


GOOD = line("a", "x", b"salt")


@pytest.mark.parametrize(
    "text",
    [
        "alice:open-sesame",
        "alice",
        GOOD.replace("16384", "1"),
        GOOD.replace("16384", "999999999"),
        GOOD.replace("SHA-512", "SHA-1"),
        GOOD.replace("$", "$!", 1),
        GOOD.replace("SHA-512", "SHA-256"),
    ],
)
def test_a_line_that_is_none_is_told_by_its_number_only(text: str) -> None:
    with pytest.raises(ValueError, match="line 2") as refused:
        parsed(f"{GOOD}\n{text}\n")
    assert "sesame" not in str(refused.value)


@given(st.text())
def test_no_token_breaks_who_reads_its_name(token: str) -> None:
    assert subject(token)


def test_a_token_names_its_subject() -> None:
    assert subject("e30.eyJzdWIiOiJraW0ifQ.x") == "kim"
    assert subject("e30.eyJzdWIiOjF9.x") == "bearer"
