"""JAAS texts: what Java reads, and what is wrong told without telling the text."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.properties.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE, Jaas, jaas_text, parse_jaas


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (f'{PLAIN_MODULE} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"{PLAIN_MODULE} REQUIRED username=a password='b c';", {"username": "a", "password": "b c"}),
        (
            f'{PLAIN_MODULE} required\n  user_alice="x" // one\n  /* two */ user_bob="y" ;',
            {"user_alice": "x", "user_bob": "y"},
        ),
        (f'{PLAIN_MODULE} optional password="a\\"b\\\\c\\td";', {"password": 'a"b\\c\td'}),
        (f"{PLAIN_MODULE} sufficient;", {}),
    ],
)
def test_a_text_is_a_module_a_flag_and_options(text: str, read: dict[str, str]) -> None:
    assert parse_jaas(text) == Jaas(PLAIN_MODULE, read)


def test_users_of_plain_are_options_of_their_own() -> None:
    found = parse_jaas(f'{PLAIN_MODULE} required username="a" user_alice="x" user_bob="y";')
    assert found.users == {"alice": "x", "bob": "y"}


@pytest.mark.parametrize(
    ("module", "mechanisms"),
    [(PLAIN_MODULE, ("PLAIN",)), (SCRAM_MODULE, ("SCRAM-SHA-256", "SCRAM-SHA-512")), (OAUTH_MODULE, ("OAUTHBEARER",))],
)
def test_a_module_is_for_certain_mechanisms(module: str, mechanisms: tuple[str, ...]) -> None:
    assert parse_jaas(f"{module} required;").mechanisms == mechanisms


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "; at the end"),
        ("secret", "; at the end"),
        (f'{PLAIN_MODULE} required password="secret"', "; at the end"),
        (f'{PLAIN_MODULE} password="secret";', "one of required"),
        (f'{PLAIN_MODULE} required "secret"="secret";', "option number 1"),
        (f'{PLAIN_MODULE} required a="b" secret;', "option number 2"),
        (f'{PLAIN_MODULE} required a="secret; ;', "has no meaning"),
        (f'{PLAIN_MODULE} required a="secret"; {PLAIN_MODULE} required;', "exactly one"),
        ("com.sun.security.auth.module.JndiLoginModule required secret=secret;", "JndiLoginModule is no login module"),
        ("com.sun.security.auth.module.Krb5LoginModule required secret=secret;", "Krb5LoginModule is no login module"),
    ],
)
def test_what_is_wrong_is_told_without_the_secrets(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as told:
        parse_jaas(text)
    assert "secret" not in str(told.value)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), st.text(), max_size=4))
def test_what_is_written_is_read_back(options: dict[str, str]) -> None:
    assert parse_jaas(jaas_text(SCRAM_MODULE, **options)) == Jaas(SCRAM_MODULE, options)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_jaas(f"{PLAIN_MODULE} required {text};")
