"""What the shell does without a server."""

from pathlib import Path

import pytest

from ottla.cli.sql.shell import Shell


def test_scripts_run_each_other_but_none_runs_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first.sql", tmp_path / "second.sql"
    first.write_text(f"SET 'auto.offset.reset'='latest'; RUN SCRIPT '{second}'; RUN SCRIPT '{second}';")
    second.write_text(f"DEFINE a='1'; RUN SCRIPT '{first}';")
    shell = Shell("http://127.0.0.1:1")
    shell.run(f"RUN SCRIPT '{first}';")
    assert (shell.properties, shell.variables, shell.failed) == ({"auto.offset.reset": "latest"}, {"A": "1"}, True)
    assert capsys.readouterr().err == f"{first} would run itself, without end: take its RUN SCRIPT out\n" * 2
