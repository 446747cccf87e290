"""Content negotiation, by RFC 9110."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.http.media import chosen, name_of

V1, JSON = "application/vnd.schemaregistry.v1+json", "application/json"
OFFERED = (V1, JSON)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", V1),
        ("*/*", V1),
        ("application/json", JSON),
        ("application/*", V1),
        ("text/html, application/json;q=0.5", JSON),
        (f"{V1};q=0.1, {JSON};q=0.9", JSON),
        ("application/json;q=0, */*;q=0.1", V1),
        ("*/*;q=0.1, application/json", JSON),
        ("APPLICATION/JSON", JSON),
        ("text/html", None),
        ("*/*;q=0", None),
        ("application/json;q=what", None),
    ],
)
def test_the_type_that_the_client_likes_best_is_chosen(accept: str, expected: str | None) -> None:
    assert chosen(accept, OFFERED) == expected


@given(st.text())
def test_any_header_is_answered_by_something_offered_or_by_nothing(accept: str) -> None:
    assert chosen(accept, OFFERED) in (V1, JSON, None)


def test_parameters_are_no_part_of_a_types_name() -> None:
    assert name_of("Application/JSON; charset=utf-8") == "application/json"
