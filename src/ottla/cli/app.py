"""From words to a command, and from whatever goes wrong to one readable message and an exit code: never a traceback."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
import sys
from collections.abc import Sequence
from typing import Final

from ottla import __version__
from ottla.cli.parser import Command, HelpAsked, UsageError, help_text, parse, suggestion, two_columns, usage
from ottla.cli.tools import TOOLS

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells expect it."""

_LEADING_WITH_VALUE: Final = ("--bootstrap", "--bootstrap-server", "-b", "--output", "--command-config")
"""Options of every client tool that people also write before the tool's name."""


def run(words: Sequence[str]) -> int:
    try:
        code = _dispatch(list(words))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        # The one edge where any failure becomes a message.
        if os.environ.get("OTTLA_TRACEBACK"):
            raise
        return _failed(error)


def _reader_gone() -> int:
    """`ottla consume … | head`: the reader has had enough, which is no failure."""
    from ottla.runtime.standard_streams import give_up_output

    give_up_output()
    return OK


def _failed(error: Exception) -> int:
    from ottla.cli.failures import explain
    from ottla.cli.output import note

    note(f"ottla: {explain(error)}")
    return FAILED


def _dispatch(words: list[str]) -> int:
    leading: list[str] = []
    while words and words[0] in _LEADING_WITH_VALUE and len(words) > 1:
        leading += words[:2]
        del words[:2]
    if not words or words[0] in ("--help", "-h", "help"):
        return _help(words[1:])
    name = words.pop(0)
    if name in ("--version", "version"):
        print(f"ottla {__version__}")
        return OK
    if name not in TOOLS:
        return _misuse(f"{name!r} is not an ottla command{suggestion(name, TOOLS)}", "ottla --help")
    commands = _commands(name)
    if len(commands) == 1 and commands[0].name == "":
        return _run(name, commands[0], leading + words)
    return _run_one_of(name, commands, leading, words)


def _run_one_of(tool: str, commands: Sequence[Command], leading: list[str], words: list[str]) -> int:
    usual = next((command for command in commands if command.is_usual), None)
    if (not words and usual is None) or words[:1] in (["--help"], ["-h"], ["help"]):
        print(_tool_help(tool, commands), end="")
        return OK if words else USAGE
    by_name = {name: command for command in commands for name in (command.name, *command.aliases)}
    chosen = _take_command(words, by_name) if words else None
    if chosen is None and (not words or words[0].startswith("-")):
        chosen = usual
    if chosen is None:
        near = suggestion(words[0], by_name)
        return _misuse(f"{tool}: {words[0]!r} is not one of {', '.join(c.name for c in commands)}{near}", f"{tool} -h")
    return _run(f"{tool} {chosen.name}", chosen, leading + words)


def _take_command(words: list[str], by_name: dict[str, Command]) -> Command | None:
    """The first word, or the way Kafka's tools say it: `--list`, `--create` … anywhere."""
    if words[0] in by_name:
        return by_name[words.pop(0)]
    for index, word in enumerate(words):
        if word.startswith("--") and word[2:] in by_name:
            del words[index]
            return by_name[word[2:]]
    # A file that is not there is still meant as one, and the command says that it is missing.
    is_file = os.path.isfile(words[0]) or "." in words[0] or os.sep in words[0]
    return next((each for each in by_name.values() if each.of_file and is_file and words[0][0] != "-"), None)


def _run(path: str, command: Command, words: Sequence[str]) -> int:
    try:
        arguments = parse(command, words)
        return command.run(arguments)
    except HelpAsked:
        print(help_text(path, command, _width()), end="")
        return OK
    except UsageError as error:
        return _misuse(f"{path}: {error}\nusage: {usage(path, command)}", f"ottla {path} --help")


def _misuse(what: str, help_command: str) -> int:
    command = help_command if help_command.startswith("ottla") else f"ottla {help_command}"
    print(f"ottla: {what}\nTry: {command}", file=sys.stderr)
    return USAGE


def _commands(tool: str) -> Sequence[Command]:
    from importlib import import_module

    commands: Sequence[Command] = import_module(TOOLS[tool][0]).COMMANDS
    return commands


def _help(words: list[str]) -> int:
    """`ottla help topics create` reads as well as `ottla topics create --help`."""
    if words and words[0] in TOOLS:
        return _dispatch([*words, "--help"])
    rows = [(name, summary) for name, (_, summary) in TOOLS.items()]
    print(
        "ottla: Apache Kafka's platform for Python people.\n\n"
        "usage: ottla COMMAND [options]\n\n"
        "examples:\n"
        "  ottla start                                  # a node on 127.0.0.1:9092, data in ./ottla-data\n"
        "  ottla topics create orders --partitions 3\n"
        "  echo 'hello' | ottla produce orders\n"
        "  ottla consume orders -o start -e\n\n"
        f"commands:\n{two_columns(rows, _width())}\n\n"
        "`ottla COMMAND --help` shows examples and options of a command. `ottla --version` shows the version.\n"
        "Client commands reach 127.0.0.1:9092 unless --bootstrap HOST:PORT or OTTLA_BOOTSTRAP names another.\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage.",
    )
    return OK


def _tool_help(tool: str, commands: Sequence[Command]) -> str:
    rows = [(command.name, command.summary) for command in commands]
    examples = [f"  {line}" for command in commands for _, line in command.examples[:1]]
    return (
        f"{TOOLS[tool][1]}\n\nusage: ottla {tool} COMMAND [options]\n\nexamples:\n" + "\n".join(examples) + "\n\n"
        f"commands:\n{two_columns(rows, _width())}\n\n"
        f"`ottla {tool} COMMAND --help` shows examples and options of a command.\n"
    )


def _width() -> int:
    try:
        return min(os.get_terminal_size(sys.stdout.fileno()).columns, 120)
    except (OSError, ValueError):
        return 100
