"""`ottla sql shell`: statements typed or from a file, sent to a SQL server, and what it answers as tables or JSON."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TextIO
from urllib.parse import SplitResult

from ottla.cli.failures import Failure
from ottla.cli.files import text_of
from ottla.cli.parser import Arguments
from ottla.cli.reach import client_settings
from ottla.cli.sql.entities import told
from ottla.cli.sql.tables import Tables, as_text, read_row
from ottla.cli.web import connection_to, shown
from ottla.http.urls import service_url

_PORT: Final = 8088
_TIMEOUT_S: Final = 60.0
_ROWS_TIMEOUT_S: Final = 900.0
"""Until the first row: a SELECT over history may have to start Spark, and has ten minutes there."""
_HISTORY: Final = Path.home() / ".ottla_sql_history"
HELP: Final = """\
Statements end with ; and may take several lines. Besides:
  help                         this text
  output FORM                  TABULAR or JSON
  server [URL]                 which server is asked
  version                      of this shell
  run script F                 the statements of a file
  history                      what was typed before
  spool F, spool off           write what is shown to a file, too
  set cli column-width N       of tables; 0: fitted to the terminal
  set cli wrap on|off          whether what does not fit goes on below, or is cut
  clear                        the screen
  exit                         the end; so does Ctrl-D. Ctrl-C ends a query that goes on.
"""


@dataclass(slots=True)
class Shell:
    url: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of Kafka's clients: whose certificates are believed, and who asks."""
    form: str = "TABULAR"
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    failed: bool = False
    table: Tables = field(default_factory=Tables)
    spool: TextIO | None = None
    scripts: list[Path] = field(default_factory=list)
    """That are being run, the innermost last."""

    def say(self, text: str) -> None:
        print(text, flush=True)
        if self.spool is not None:
            print(text, file=self.spool, flush=True)

    # ---- one statement

    def run(self, text: str) -> None:
        from ottla.sql import tree as t
        from ottla.sql.errors import SqlError
        from ottla.sql.lexer import pieces, substituted
        from ottla.sql.session import Session

        try:
            for piece in pieces(text):
                over_history = substituted(piece.text, self.variables)
                if _is_history(over_history):
                    self._select(over_history)
                    continue
                session = Session(properties=self.properties, variables=self.variables)
                ((statement, own),) = session.statements(piece.text + ";")
                if session.set(statement):
                    continue
                match statement:
                    case t.SelectQuery():
                        self._select(own)
                    case t.PrintTopic():
                        self._print(own)
                    case t.RunScript(path=path):
                        self._script(path)
                    case t.Show(what="VARIABLES"):
                        self._statement(own + ";", {"sessionVariables": self.variables})
                    case _:
                        self._statement(own + ";")
        except SqlError as error:
            self._wrong(str(error))
        except (OSError, HTTPException) as error:
            parts = self._parts  # without the password
            where = f"{parts.scheme}://{parts.hostname}:{parts.port}"
            self._wrong(f"{where} does not answer: {str(error) or type(error).__name__}")

    def _wrong(self, message: str) -> None:
        self.failed = True
        print(message, file=sys.stderr)

    def _script(self, path: str) -> None:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._wrong(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")
            return
        here = Path(path).resolve()
        if here in self.scripts:
            self._wrong(f"{path} would run itself, without end: take its RUN SCRIPT out")
            return
        self.scripts.append(here)
        try:
            self.run(text)
        finally:
            self.scripts.pop()

    def _statement(self, text: str, more: Mapping[str, Any] = MappingProxyType({})) -> None:
        status, answer = self._ask("/ksql", {"ksql": text, "streamsProperties": self.properties, **more})
        if status != 200:
            self._wrong(str(answer.get("message", answer) if isinstance(answer, dict) else answer))
        elif self.form == "JSON":
            self.say(json.dumps(answer, indent=2))
        else:
            for entity in answer:
                self.say(told(entity))

    def _ask(self, path: str, body: Any) -> tuple[int, Any]:
        connection = self._connection()
        try:
            connection.request("POST", path, json.dumps(body), self._headers())
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        return connection_to(self._parts, self.settings, _TIMEOUT_S)

    def _headers(self) -> dict[str, str]:
        return {"content-type": "application/json", **shown(self._parts, self.settings)}

    @property
    def _parts(self) -> SplitResult:
        """Raises Failure."""
        try:
            parts = service_url(self.url if "://" in self.url else f"http://{self.url}", "server")
        except ValueError as error:
            raise Failure(str(error)) from None
        return parts if parts.port else parts._replace(netloc=f"{parts.netloc}:{_PORT}")

    def _select(self, text: str) -> None:
        self._followed(text, lambda lines: self._rows(map(read_row, lines)))

    def _print(self, text: str) -> None:
        def show(lines: Iterator[bytes]) -> None:
            for line in lines:
                self.say(line.decode().rstrip("\n"))

        self._followed(text, show)

    def _followed(self, text: str, show: Callable[[Iterator[bytes]], None]) -> None:
        """Lines of a query until its end, or Ctrl-C."""
        connection = connection_to(self._parts, self.settings, _ROWS_TIMEOUT_S)
        body = {"sql": text + ";", "properties": self.properties}
        try:
            connection.request("POST", "/query-stream", json.dumps(body), self._headers())
            response = connection.getresponse()
            if response.status != 200:
                self._wrong(json.loads(response.read())["message"])
                return
            if connection.sock is not None:
                connection.sock.settimeout(None)
            show(iter(response.readline, b""))
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
                    self.say(self.table.row(names, len(names)) + "\n" + self.table.rule(len(names)))
                continue
            as_json = self.form == "JSON"
            self.say(as_text(dict(zip(names, line, strict=False))) if as_json else self.table.row(line, len(names)))

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
            case ["version"]:
                from ottla import __version__

                self.say(__version__)
            case ["clear"]:
                print("\033[2J\033[H", end="", flush=True)
            case ["history"]:
                _print_history()
            case ["spool", _]:
                self._spool(words[1])
            case ["set", "cli", "column-width", width] if width.isdigit():
                self.table = replace(self.table, width=int(width))
            case ["set", "cli", "wrap", "on" | "off" as wrap]:
                self.table = replace(self.table, wraps=wrap == "on")
            case _:
                return False
        return True

    def _spool(self, where: str) -> None:
        if self.spool is not None:
            self.spool.close()
            self.spool = None
        if where.lower() == "off":
            return
        try:
            self.spool = open(where.strip("'"), "a", encoding="utf-8")  # noqa: SIM115  it lasts until `spool off`
        except OSError as error:
            self._wrong(f"{where} cannot be written: {error.strerror}")


def _is_history(text: str) -> bool:
    from ottla.sql.functions import AGGREGATES
    from ottla.sql.history.text import is_history

    return is_history(text, AGGREGATES)


def _print_history() -> None:
    import readline

    for number in range(1, readline.get_current_history_length() + 1):
        print(f"{number:>5}  {readline.get_history_item(number)}")


# ---- the command


def shell(arguments: Arguments) -> int:
    made = Shell(arguments.optional("server") or f"http://127.0.0.1:{_PORT}", client_settings(arguments))
    made.form = "JSON" if arguments.flag("json") else "TABULAR"
    if arguments.has("execute"):
        text = arguments.text("execute")
        made.run(text if text.rstrip().endswith(";") else text + ";")
    elif arguments.has("file"):
        try:
            text = text_of(arguments.text("file"))
        except OSError as error:
            raise Failure(f"{arguments.text('file')} cannot be read: {error.strerror}") from error
        made.run(text)
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
