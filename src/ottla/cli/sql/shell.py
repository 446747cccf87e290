"""`ottla sql shell`: statements typed or from a file, sent to a SQL server, and what it answers as tables or JSON."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ottla.cli.failures import Failure
from ottla.cli.parser import Arguments

_TIMEOUT_S: Final = 60.0
_NARROWEST: Final = 6
_HISTORY: Final = Path.home() / ".ottla_sql_history"
HELP: Final = """\
Statements end with ; and may take several lines. Besides:
  help           this text
  output FORM    TABULAR or JSON
  server [URL]   which server is asked
  run script F   the statements of a file
  exit           the end; so does Ctrl-D. Ctrl-C ends a query that goes on.
"""


@dataclass(slots=True)
class Shell:
    url: str
    form: str = "TABULAR"
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    failed: bool = False

    # ---- one statement

    def run(self, text: str) -> None:
        from ottla.sql import tree as t
        from ottla.sql.errors import SqlError
        from ottla.sql.lexer import pieces
        from ottla.sql.session import Session

        try:
            for piece in pieces(text):
                session = Session(properties=self.properties, variables=self.variables)
                ((statement, own),) = session.statements(piece.text + ";")
                if session.set(statement):
                    continue
                match statement:
                    case t.SelectQuery():
                        self._select(own)
                    case t.RunScript(path=path):
                        self.run(Path(path).read_text(encoding="utf-8"))
                    case _:
                        self._statement(own + ";")
        except SqlError as error:
            self._wrong(str(error))
        except OSError as error:
            self._wrong(f"{self.url} does not answer: {error}")

    def _wrong(self, message: str) -> None:
        self.failed = True
        print(message, file=sys.stderr)

    def _statement(self, text: str) -> None:
        status, answer = self._ask("/ksql", {"ksql": text, "streamsProperties": self.properties})
        if status != 200:
            self._wrong(str(answer.get("message", answer)))
        elif self.form == "JSON":
            print(json.dumps(answer, indent=2))
        else:
            for entity in answer:
                print(told(entity))

    def _ask(self, path: str, body: Any) -> tuple[int, Any]:
        connection = self._connection()
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        found = urlsplit(self.url)
        return HTTPConnection(found.hostname or "127.0.0.1", found.port or 8088, timeout=_TIMEOUT_S)

    def _select(self, text: str) -> None:
        connection = self._connection()
        body = {"sql": text + ";", "properties": self.properties}
        try:
            connection.request("POST", "/query-stream", json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                self._wrong(json.loads(response.read())["message"])
                return
            if connection.sock is not None:
                connection.sock.settimeout(None)
            lines = (json.loads(line) for line in iter(response.readline, b""))
            self._rows(lines)
        except KeyboardInterrupt:
            print("\nQuery ended.")
        finally:
            connection.close()

    def _rows(self, lines: Iterator[Any]) -> None:
        names: Sequence[str] = ()
        for line in lines:
            if isinstance(line, dict):
                if "columnNames" not in line:
                    self._wrong(str(line.get("message", line)))
                    return
                names = line["columnNames"]
                if self.form == "TABULAR":
                    print(row_text(names, len(names)) + "\n" + rule(len(names)), flush=True)
                continue
            print(
                json.dumps(dict(zip(names, line, strict=False))) if self.form == "JSON" else row_text(line, len(names))
            )
            sys.stdout.flush()

    # ---- words of its own

    def own(self, line: str) -> bool | None:
        """Whether a line was one for the shell itself; None: it was the last."""
        words = line.strip().rstrip(";").split()
        match [word.lower() for word in words]:
            case ["exit" | "quit"]:
                return None
            case ["help"]:
                print(HELP, end="")
            case ["output", form] if form.upper() in ("TABULAR", "JSON"):
                self.form = form.upper()
            case ["server"]:
                print(self.url)
            case ["server", _]:
                self.url = words[1]
            case _:
                return False
        return True


# ---- tables


def _width(columns: int) -> int:
    return max(_NARROWEST, (shutil.get_terminal_size().columns - 1) // max(columns, 1) - 1)


def rule(columns: int) -> str:
    return "+" + "+".join("-" * _width(columns) for _ in range(columns)) + "+"


def row_text(cells: Sequence[Any], columns: int) -> str:
    """Fitted to the terminal; what does not fit goes on below."""
    width = _width(columns)
    texts = [each if isinstance(each, str) else json.dumps(each) for each in cells]
    parts = [[text[at : at + width] for at in range(0, len(text), width)] or [""] for text in texts]
    height = max(map(len, parts), default=1)
    return "\n".join(
        "|" + "|".join((part[line] if line < len(part) else "").ljust(width) for part in parts) + "|"
        for line in range(height)
    )


def told(entity: dict[str, Any]) -> str:
    """An entity for people."""
    kind = entity["@type"]
    if kind == "currentStatus":
        return str(entity["commandStatus"]["message"])
    for name in ("streams", "tables", "queries", "topics", "functions", "properties", "variables"):
        if isinstance(entity.get(name), list) and kind != "describe_function":
            return _table(entity[name])
    if kind == "sourceDescription":
        found = entity["sourceDescription"]
        rows = [
            {"Field": each["name"], "Type": _typed(each["schema"]), "": each.get("type", "")}
            for each in found["fields"]
        ]
        return f"Name: {found['name']}\n{_table(rows)}"
    return json.dumps(
        {name: each for name, each in entity.items() if name not in ("statementText", "warnings")}, indent=2
    )


def _typed(schema: dict[str, Any]) -> str:
    given = schema.get("parameters")
    return f"{schema['type']}({given['precision']}, {given['scale']})" if given else str(schema["type"])


def _table(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "(none)"
    names = list(rows[0])
    cells = [[each if isinstance(each, str) else json.dumps(each) for each in row.values()] for row in rows]
    widths = [max(len(name), *(len(row[at]) for row in cells)) for at, name in enumerate(names)]
    lines = [names, ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


# ---- the command


def shell(arguments: Arguments) -> int:
    made = Shell(arguments.optional("server") or "http://127.0.0.1:8088")
    made.form = "JSON" if arguments.flag("json") else "TABULAR"
    if arguments.has("execute"):
        text = arguments.text("execute")
        made.run(text if text.rstrip().endswith(";") else text + ";")
    elif arguments.has("file"):
        try:
            made.run(Path(arguments.text("file")).read_text(encoding="utf-8"))
        except OSError as error:
            raise Failure(f"{arguments.text('file')} cannot be read: {error.strerror}") from error
    else:
        _typed_lines(made)
        return 0
    return 1 if made.failed else 0


def _typed_lines(made: Shell) -> None:
    import readline
    from contextlib import suppress

    from ottla import __version__

    if sys.stdin.isatty():
        print(f"ottla {__version__} SQL at {made.url}; `help` says more.")
        with suppress(OSError):
            readline.read_history_file(_HISTORY)
        readline.set_completer(_completer(made))
        readline.parse_and_bind("tab: complete")
    text = ""
    while True:
        try:
            line = input("" if not sys.stdin.isatty() else "sql> " if not text else "   > ")
        except EOFError:
            break
        except KeyboardInterrupt:
            print()
            text = ""
            continue
        if not text:
            own = made.own(line)
            if own is None:
                break
            if own:
                continue
        text += line + "\n"
        if line.rstrip().endswith(";"):
            made.run(text)
            text = ""
    if sys.stdin.isatty():
        with suppress(OSError):
            readline.write_history_file(_HISTORY)


_WORDS: Final = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "PARTITION",
    "HAVING",
    "EMIT",
    "CHANGES",
    "FINAL",
    "LIMIT",
    "CREATE",
    "STREAM",
    "TABLE",
    "AS",
    "INSERT",
    "INTO",
    "VALUES",
    "DROP",
    "DESCRIBE",
    "EXPLAIN",
    "SHOW",
    "STREAMS",
    "TABLES",
    "TOPICS",
    "QUERIES",
    "FUNCTIONS",
    "TERMINATE",
    "PAUSE",
    "RESUME",
    "SET",
    "UNSET",
    "DEFINE",
    "WINDOW",
    "TUMBLING",
    "HOPPING",
    "SESSION",
    "SIZE",
    "WITHIN",
    "JOIN",
    "LEFT",
    "RIGHT",
    "FULL",
    "ON",
    "WITH",
    "KAFKA_TOPIC",
    "VALUE_FORMAT",
    "KEY_FORMAT",
    "PARTITIONS",
]


def _completer(made: Shell) -> Any:
    """Words of the language, names of sources and their columns, functions."""

    def known() -> list[str]:
        found = [*_WORDS]
        try:
            _, answer = made._ask("/ksql", {"ksql": "DESCRIBE STREAMS; DESCRIBE TABLES; SHOW FUNCTIONS;"})
            for entity in answer if isinstance(answer, list) else ():
                for source in entity.get("sourceDescriptions", ()):
                    found += [source["name"], *(each["name"] for each in source["fields"])]
                found += [each["name"] for each in entity.get("functions", ())]
        except OSError:
            pass
        return sorted(set(found))

    cache: list[str] = []

    def complete(begun: str, number: int) -> str | None:
        if number == 0:
            cache[:] = [each for each in known() if each.startswith(begun.upper())]
        return cache[number] if number < len(cache) else None

    return complete
