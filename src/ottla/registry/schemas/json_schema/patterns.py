"""Regular expressions of schemas: whether they are any, and whether one finds something in a name.

Schemas hold Java's dialect (Confluent's server compiles them with it) or ECMA's (the drafts ask for that). They are run
by jsonschema-rs alone, whose engine takes linear time for most and counts its steps back for the rest; Python's `re` is
asked only whether it can read one, as a second opinion about dialect.
"""

import re
import warnings
from functools import lru_cache
from typing import Final

import jsonschema_rs

BACKTRACK_LIMIT: Final = 10_000
"""Steps back in one search. More, and the search counts as without a find."""
COMPILED_BYTES: Final = 1 << 20
MAX_LENGTH: Final = 10_000
"""Characters of one expression."""

OPTIONS: Final = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=BACKTRACK_LIMIT, size_limit=COMPILED_BYTES, dfa_size_limit=COMPILED_BYTES
)

_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_LEADING_FLAGS: Final = re.compile(r"^\(\?[a-zA-Z]+\)")


def complaint(pattern: str) -> str | None:
    """What is wrong with it; None if it can be read in one of the dialects."""
    if len(pattern) > MAX_LENGTH:
        return f"longer than {MAX_LENGTH} characters"
    if _compiled(pattern) is not None:
        return None
    plain = _LEADING_FLAGS.sub("", _QUOTED.sub(lambda quoted: re.escape(quoted[1]), pattern))
    if plain != pattern and _compiled(plain) is not None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a later Python may read differently
            re.compile(plain)
    except (re.error, OverflowError) as error:
        return str(error)
    except RecursionError:
        return "groups nested too deeply"
    return None


def finds(pattern: str, name: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is not None and compiled.is_valid(name)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> jsonschema_rs.Validator | None:
    if len(pattern) > MAX_LENGTH:
        return None
    try:
        return jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=OPTIONS, offline=True)
    except ValueError:
        return None
