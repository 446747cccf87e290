"""What a dump consists of: lines of named values in kafka-dump-log's words, and problems."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import sys
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.cli.output import Json

Fields = Mapping[str, Json]
RECORD_MARK: Final = "| "


class Dump:
    """Where lines and problems go. As text a line is `name: value name: value`; as JSON an object per line."""

    __slots__ = ("_as_json", "_file", "problems")

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._file = ""
        self.problems: list[str] = []

    def begin(self, path: str) -> None:
        self._file = path
        if not self._as_json:
            sys.stdout.write(f"Dumping {path}\n")

    def heading(self, text: str, fields: Fields) -> None:
        if self._as_json:
            self._json("heading", fields)
        else:
            sys.stdout.write(text + "\n")

    def line(self, kind: str, fields: Fields, mark: str = "") -> None:
        if self._as_json:
            self._json(kind, fields)
        else:
            sys.stdout.write(mark + " ".join(f"{name}: {shown(value)}" for name, value in fields.items()) + "\n")

    def problem(self, text: str) -> None:
        """Shown at the end, after the lines; it makes the exit code 1."""
        self.problems.append(f"{self._file}: {text}")

    def _json(self, kind: str, fields: Fields) -> None:
        sys.stdout.write(compact_json({"file": self._file, "kind": kind, **fields}) + "\n")


def shown(value: Json) -> str:
    if value is None:
        return "OptionalLong.empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(str, value)) + "]"
    if isinstance(value, Mapping):
        return compact_json(value)
    return str(value)


def compact_json(value: Json) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def one_per_line(problems: Iterable[str]) -> str:
    return "".join(f"  {problem}\n" for problem in problems)
