"""Transcripts: what happened, as text that is kept and reviewed as a diff.

`OTTLA_REWRITE_GOLDEN=1 pytest tests/golden` writes them anew. Read them as documentation: each file is one story.
"""

import os
from pathlib import Path


def compare(path: Path, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    if os.environ.get("OTTLA_REWRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), (
        f"{path.name} tells another story; if this one is right, rewrite it and read its diff"
    )
