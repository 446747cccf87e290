"""JAAS texts, as `sasl.jaas.config` has them: one login module, a flag, options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="…";

Read as Java's StreamTokenizer reads them: words, texts in either kind of quotes with backslashes, comments.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_PACKAGE: Final = "org.apache.kafka.common.security."
MODULES: Final = {
    f"{_PACKAGE}plain.PlainLoginModule": ("PLAIN",),
    f"{_PACKAGE}scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    f"{_PACKAGE}oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
}
"""Kafka's own, with the mechanisms that each is for. They mean what is built in: no text names code to run."""
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = (
    r"(?P<blank>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<word>[A-Za-z0-9_.$\-\u00a0-\uffff]+)"
    r"|(?P<mark>[=;])"
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class Jaas(NamedTuple):
    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Jaas({self.module!r}, {sorted(self.options)})"  # secrets never reach logs

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return MODULES[self.module]

    @property
    def users(self) -> dict[str, str]:
        """PLAIN: who may log in, `user_alice="…"`."""
        prefix = "user_"
        return {name[len(prefix) :]: text for name, text in self.options.items() if name.startswith(prefix)}


def parse_jaas(text: str) -> Jaas:
    """Raises ValueError, which tells none of the text: it holds passwords."""
    words = list(_tokens(text))
    if len(words) < 3 or words[-1] != ("mark", ";"):
        raise ValueError('not a JAAS text: <login module> required name="value" …; is expected, with a ; at the end')
    (kind, module), (_, flag), *rest = words[:-1]
    if kind != "word" or module not in MODULES:
        known = ", ".join(name.rpartition(".")[2] for name in MODULES)
        named = module if kind == "word" else "a text in quotes"
        raise ValueError(f"{named} is no login module of this version, which has Kafka's {known}")
    if flag.lower() not in _FLAGS:
        raise ValueError(f"behind the login module one of {', '.join(_FLAGS)} is expected")
    if ("mark", ";") in rest:
        raise ValueError("exactly one login module is expected")
    return Jaas(module, _options(rest))


def _options(words: list[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in range(0, len(words), 3):
        option = words[place : place + 3]
        if len(option) < 3 or option[0][0] != "word" or option[1] != ("mark", "=") or option[2][0] == "mark":
            raise ValueError(f'its option number {place // 3 + 1} is not of the form name="value"')
        found[option[0][1]] = option[2][1]
    return found


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    pattern, place = re.compile(_TOKEN, re.DOTALL), 0
    while place < len(text):
        found = pattern.match(text, place)
        if found is None:
            raise ValueError(f"its character number {place + 1} has no meaning there")
        place = found.end()
        kind = found.lastgroup or ""
        if kind == "text":
            inner = re.sub(r"\\(.)", lambda escape: _ESCAPED.get(escape[1], escape[1]), found[0][1:-1], flags=re.DOTALL)
            yield kind, inner
        elif kind != "blank":
            yield kind, found[0]


def jaas_text(module: str, **options: str) -> str:
    """The text that says this: `parse_jaas` reads it back."""
    quoted = [f'{name}="{_quoted(value)}"' for name, value in options.items()]
    return " ".join([module, "required", *quoted]) + ";"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


PLAIN_MODULE, SCRAM_MODULE, OAUTH_MODULE = MODULES
