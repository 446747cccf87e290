"""`ottla connect run`: one connector without a worker."""

import json
import sys
from pathlib import Path

import pytest

from ottla.cli.connect.run import spec_of, unheeded
from ottla.cli.failures import Failure
from ottla.cli.parser import Arguments


@pytest.fixture(autouse=True)
def kept_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")


def file_of(folder: Path, **config: str) -> str:
    path = folder / "orders.json"
    path.write_text(json.dumps({"name": "orders", "config": {"connector.class": "FileStreamSink", **config}}))
    return str(path)


def test_references_to_files_directories_and_the_environment_are_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "db.properties").write_text("password=hunter2\n")
    (tmp_path / "token").write_text("open sesame")
    monkeypatch.setenv("ORDERS_KEY", "4711")
    path = file_of(
        tmp_path,
        a=f"x-${{file:{tmp_path}/db.properties:password}}",
        b=f"${{directory:{tmp_path}:token}}",
        c="${env:ORDERS_KEY}",
        topics="${topic}",
    )
    spec = spec_of(Arguments(), path)
    assert spec.config == {
        "connector.class": "FileStreamSink",
        "a": "x-hunter2",
        "b": "open sesame",
        "c": "4711",
        "topics": "${topic}",
    }
    assert spec.secrets == ("open sesame", "x-hunter2", "hunter2", "4711")


def test_a_reference_to_a_file_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="Could not read properties from file /nowhere"):
        spec_of(Arguments(), file_of(tmp_path, a="${file:/nowhere:password}"))


def test_keys_that_change_nothing_are_told(tmp_path: Path) -> None:
    path = file_of(tmp_path, file="/out", topics="t", **{"max.retries": "3", "value.converter.schemas.enable": "false"})
    assert unheeded(spec_of(Arguments(), path)) == ("max.retries",)
    assert unheeded(spec_of(Arguments(), file_of(tmp_path, **{"connector.class": "nothing.there"}))) == ()
