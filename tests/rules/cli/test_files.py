import io
import sys
from pathlib import Path

import pytest

from ottla.cli.failures import Failure
from ottla.cli.files import text_of


def test_what_is_no_text_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "connector.json"
    file.write_text("ä", encoding="utf-8")
    assert text_of(str(file)) == "ä"
    file.write_bytes(b'{"\xff"')
    with pytest.raises(Failure, match=r"connector\.json is no text in UTF-8: invalid start byte \(byte 2\)"):
        text_of(str(file))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    with pytest.raises(Failure, match="standard input is no text in UTF-8"):
        text_of("-")
