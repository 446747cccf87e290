"""Regular expressions, in the part of Java's syntax that Python reads alike."""

from typing import Final

from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e

FUNCTIONS: Final = table(
    scalar(
        "REGEXP_EXTRACT",
        e.regexp_extract,
        "STRING, STRING[, INT] -> STRING",
        about="The first match of a pattern in a text, or a group of it.",
    ),
    scalar(
        "REGEXP_EXTRACT_ALL",
        e.regexp_extract_all,
        "STRING, STRING[, INT] -> ARRAY<STRING>",
        about="All matches of a pattern in a text, or a group of each.",
    ),
    scalar(
        "REGEXP_REPLACE",
        e.regexp_replace,
        "STRING, STRING, STRING -> STRING",
        about="All matches of the pattern in a text replaced; $1 is the first group.",
    ),
    scalar(
        "REGEXP_SPLIT_TO_ARRAY",
        e.regexp_split,
        "STRING, STRING -> ARRAY<STRING>",
        about="The parts of a text between the matches of a pattern.",
    ),
)
