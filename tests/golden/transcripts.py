"""Transcripts: what happened, as text that is kept and reviewed as a diff.

`OTTLA_REWRITE_GOLDEN=1 pytest tests/golden` writes them anew. Read them as documentation: each file is one story.
"""

import os
from pathlib import Path

from ottla.model.ids import uuid_text
from ottla.protocol.codec import Struct


def compare(path: Path, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    if os.environ.get("OTTLA_REWRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), (
        f"{path.name} tells another story; if this one is right, rewrite it and read its diff"
    )


def shown(value: object) -> str:
    """Fields at their default are left out, ids are printed as Kafka prints them."""
    if isinstance(value, Struct):
        plain = type(value)()
        given = {n: getattr(value, n) for n in value.FIELDS if getattr(value, n) != getattr(plain, n)}
        if type(value).__qualname__.startswith("CreateTopicsResponse"):
            given.pop("configs", None)  # every config of the table: long, and tested elsewhere
        inside = ", ".join(f"{name}={shown(content)}" for name, content in given.items())
        return f"{type(value).__qualname__.rpartition('.')[2]}({inside})"
    if isinstance(value, bytes) and len(value) == 16:
        return uuid_text(value).lstrip("A") or "0"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return value.name if hasattr(value, "name") else repr(value)
