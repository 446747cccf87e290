"""Texts, and what they have in common with bytes. The first character is number 1."""

from typing import Final

from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e

_MASKS: Final = ", STRING, STRING, STRING, STRING"
_MASKED: Final = (
    " behind X, x, n and -, or four texts for upper case, lower case, digits and all else (null keeps them)"
)

FUNCTIONS: Final = table(
    scalar("CHR", e.chr_, "INT -> STRING", "STRING -> STRING", about=r"The character of a code point, or of '\uXXXX'."),
    scalar(
        "CONCAT", e.ksql_concat, "STRING... -> STRING", "BYTES... -> BYTES", about="Put together; nulls are left out."
    ),
    scalar(
        "CONCAT_WS",
        e.concat_ws,
        "STRING, STRING... -> STRING",
        "BYTES, BYTES... -> BYTES",
        about="Put together with the first between them; nulls are left out.",
    ),
    scalar("INITCAP", e.initcap, "STRING -> STRING", about="Each word begins with a capital letter."),
    scalar(
        "INSTR",
        e.instr,
        "STRING, STRING[, INT, INT] -> INT",
        about="Where the second is in the first, from a place on, for the nth time; 0 if nowhere.",
    ),
    scalar("LCASE", e.lower, "STRING -> STRING", about="In small letters."),
    scalar("UCASE", e.upper, "STRING -> STRING", about="In capital letters."),
    scalar(
        "LEN",
        e.ksql_length,
        "STRING -> INT",
        "BYTES -> INT",
        about="How long it is, in units of UTF-16: an emoji is two.",
    ),
    scalar(
        "LPAD",
        e.lpad,
        "STRING, INT, STRING -> STRING",
        "BYTES, INT, BYTES -> BYTES",
        about="Filled up at the left, or cut, to a length.",
    ),
    scalar(
        "RPAD",
        e.rpad,
        "STRING, INT, STRING -> STRING",
        "BYTES, INT, BYTES -> BYTES",
        about="Filled up at the right, or cut, to a length.",
    ),
    scalar("MASK", e.mask, f"STRING[{_MASKS}] -> STRING", about=f"Hidden{_MASKED}."),
    scalar(
        "MASK_LEFT", e.mask_left, f"STRING, INT[{_MASKS}] -> STRING", about=f"The first characters hidden{_MASKED}."
    ),
    scalar(
        "MASK_RIGHT", e.mask_right, f"STRING, INT[{_MASKS}] -> STRING", about=f"The last characters hidden{_MASKED}."
    ),
    scalar(
        "MASK_KEEP_LEFT",
        e.mask_keep_left,
        f"STRING, INT[{_MASKS}] -> STRING",
        about=f"All but the first characters hidden{_MASKED}.",
    ),
    scalar(
        "MASK_KEEP_RIGHT",
        e.mask_keep_right,
        f"STRING, INT[{_MASKS}] -> STRING",
        about=f"All but the last characters hidden{_MASKED}.",
    ),
    scalar("MD5", e.md5, "STRING -> STRING", about="The MD5 of its UTF-8, in small hexadecimal digits."),
    scalar("REPLACE", e.ksql_replace, "STRING, STRING, STRING -> STRING", about="The second replaced by the third."),
    scalar(
        "SPLIT",
        e.split_text,
        "STRING, STRING -> ARRAY<STRING>",
        "BYTES, BYTES -> ARRAY<BYTES>",
        about="The parts between a delimiter; an empty one splits characters.",
    ),
    scalar(
        "SPLIT_TO_MAP",
        e.split_to_map,
        "STRING, STRING, STRING -> MAP<STRING, STRING>",
        about="A map of a text such as a=1;b=2, given ';' and '='.",
    ),
    scalar(
        "SUBSTRING",
        e.ksql_substring,
        "STRING, INT[, INT] -> STRING",
        "BYTES, INT[, INT] -> BYTES",
        about="From a place on, so many; a negative place counts from the end.",
    ),
    scalar("TRIM", e.ksql_trim, "STRING -> STRING", about="Without blanks and control characters at both ends."),
)
