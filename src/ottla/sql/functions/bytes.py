"""Bytes: as text in several encodings, and as numbers."""

from typing import Final

from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression


def _uuid(given: Expression | None = None) -> Expression:
    return e.random_uuid() if given is None else e.uuid_from_bytes(given)


FUNCTIONS: Final = table(
    scalar(
        "TO_BYTES",
        e.to_bytes,
        "STRING, STRING -> BYTES",
        about="The bytes of a text in 'hex', 'utf8', 'ascii', 'base64'.",
    ),
    scalar("FROM_BYTES", e.from_bytes, "BYTES, STRING -> STRING", about="As 'hex', 'utf8', 'ascii' or 'base64'."),
    scalar("ENCODE", e.encode, "STRING, STRING, STRING -> STRING", about="From one of these encodings to another."),
    scalar(
        "BIGINT_FROM_BYTES",
        e.long_from_bytes,
        "BYTES[, STRING] -> BIGINT",
        about="Of 8 bytes, 'BIG_ENDIAN' or 'LITTLE_ENDIAN'.",
    ),
    scalar("INT_FROM_BYTES", e.int_from_bytes, "BYTES[, STRING] -> INT", about="Of 4 bytes."),
    scalar("DOUBLE_FROM_BYTES", e.double_from_bytes, "BYTES[, STRING] -> DOUBLE", about="Of 8 bytes."),
    scalar("UUID", _uuid, " -> STRING", "BYTES -> STRING", about="A new one, or that of 16 bytes."),
)
