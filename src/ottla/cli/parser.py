"""What a command takes, declared once: parsing, help and "did you mean" all read the same table.

Ours instead of argparse or cyclopts for three reasons, in the order of their weight: an option's value may begin with a
dash (`-o -10:end`), help teaches by example, and nothing is imported for it (docs/DECISIONS.md has the milliseconds).
"""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from collections.abc import Callable, Iterable, Sequence


class UsageError(Exception):
    """The command line itself is wrong: exit code 2, with the way out in the text."""


class HelpAsked(Exception):
    """Raised by parsing when -h stands anywhere."""


class Option:
    """A named value. Without `value` it is a flag; with `many` it may be repeated."""

    __slots__ = ("choices", "default", "help", "hidden", "key", "many", "names", "number", "value")

    def __init__(
        self,
        *names: str,
        help: str,
        value: str = "",
        key: str = "",
        default: str | None = None,
        many: bool = False,
        number: bool = False,
        choices: Sequence[str] = (),
        hidden: bool = False,
    ) -> None:
        self.names = names
        self.help = help
        self.value = value
        self.key = key or names[0].lstrip("-").replace("-", "_")
        self.default = default
        self.many = many
        self.number = number
        self.choices = tuple(choices)
        self.hidden = hidden


class Argument:
    """A value by position. `flags` are names under which Kafka's own tools take the same value."""

    __slots__ = ("flags", "help", "key", "many", "name", "required")

    def __init__(
        self, name: str, *, help: str, many: bool = False, required: bool = True, flags: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.key = name.lower().replace("-", "_")
        self.help = help
        self.many = many
        self.required = required
        self.flags = tuple(flags)


class Arguments:
    """What was given, by key. Texts are kept as typed; numbers were checked while parsing."""

    __slots__ = ("_flags", "_texts")

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._flags: set[str] = set()

    def add(self, key: str, text: str) -> None:
        self._texts.setdefault(key, []).append(text)

    def switch_on(self, key: str) -> None:
        self._flags.add(key)

    def has(self, key: str) -> bool:
        return key in self._texts

    def flag(self, key: str) -> bool:
        return key in self._flags

    def texts(self, key: str) -> list[str]:
        return list(self._texts.get(key, ()))

    def optional(self, key: str) -> str | None:
        given = self._texts.get(key)
        return given[-1] if given else None

    def text(self, key: str) -> str:
        """Only for what the table requires or gives a default."""
        return self._texts[key][-1]

    def number(self, key: str) -> int:
        return int(self.text(key))

    def optional_number(self, key: str) -> int | None:
        text = self.optional(key)
        return None if text is None else int(text)


class Command:
    """One thing the command line can do."""

    __slots__ = ("aliases", "arguments", "details", "examples", "form", "is_usual", "name", "of_file", "options", "run",
                 "summary")  # fmt: skip

    def __init__(
        self,
        name: str,
        run: Callable[[Arguments], int],
        *,
        summary: str,
        details: str = "",
        form: str = "",
        arguments: Sequence[Argument] = (),
        options: Sequence[Option] = (),
        examples: Sequence[tuple[str, str]] = (),
        aliases: Sequence[str] = (),
        of_file: bool = False,
        is_usual: bool = False,
    ) -> None:
        self.name = name
        self.run = run
        self.summary = summary
        self.details = details
        self.form = form
        """The arguments as the usage line shows them, where the table alone would say too little."""
        self.arguments = tuple(arguments)
        self.options = tuple(options)
        self.examples = tuple(examples)
        self.aliases = tuple(aliases)
        self.of_file = of_file
        """Its name may be left out where the first word is a file."""
        self.is_usual = is_usual
        """Its name may be left out where nothing but options follows."""


HELP = Option("--help", "-h", help="Show this text.")


def parse(command: Command, words: Sequence[str]) -> Arguments:
    """Raises UsageError for anything the table does not allow, HelpAsked for -h."""
    reader = _Reader(command)
    reader.read(words)
    return reader.finish()


class _Reader:
    __slots__ = ("_command", "_flag_arguments", "_given", "_options", "_positions")

    def __init__(self, command: Command) -> None:
        self._command = command
        self._given = Arguments()
        self._positions: list[str] = []
        self._options = {name: option for option in (*command.options, HELP) for name in option.names}
        self._flag_arguments = {flag: argument for argument in command.arguments for flag in argument.flags}

    def read(self, words: Sequence[str]) -> None:
        left = list(reversed(words))
        while left:
            word = left.pop()
            if word == "--":
                self._positions += reversed(left)
                return
            if word.startswith("--"):
                name, equals, text = word.partition("=")
                self._named(name, text if equals else None, left)
            elif len(word) > 1 and word[0] == "-":
                self._short(word, left)
            else:
                self._positions.append(word)

    def _short(self, word: str, left: list[str]) -> None:
        """`-n 5`, `-n5`, `-n=5`, and flags run together as in `-eq`."""
        name, rest = word[:2], word[2:]
        option = self._options.get(name)
        if option is not None and not option.value and rest:
            self._named(name, None, left)
            self._short("-" + rest, left)
        else:
            self._named(name, rest.removeprefix("=") if rest else None, left)

    def _named(self, name: str, text: str | None, left: list[str]) -> None:
        argument = self._flag_arguments.get(name)
        if argument is not None:
            for part in self._value(name, argument.name, text, left).split(","):
                self._given.add(argument.key, part)
            return
        option = self._options.get(name)
        if option is None:
            raise UsageError(f"{name} is not an option of this command{suggestion(name, self._known())}")
        if option is HELP:
            raise HelpAsked
        if not option.value:
            if text is not None:
                raise UsageError(f"{name} is a switch and takes no value (got {text!r})")
            self._given.switch_on(option.key)
            return
        value = self._value(name, option.value, text, left)
        _check(option, name, value)
        if not option.many and self._given.has(option.key):
            raise UsageError(f"{name} is given twice")
        self._given.add(option.key, value)

    def _value(self, name: str, what: str, text: str | None, left: list[str]) -> str:
        if text is not None:
            return text
        if not left:
            raise UsageError(f"{name} needs a value: {name} {what}")
        return left.pop()

    def _known(self) -> list[str]:
        hidden = {name for option in self._command.options if option.hidden for name in option.names}
        return [*(name for name in self._options if name not in hidden), *self._flag_arguments]

    def finish(self) -> Arguments:
        self._place()
        for option in self._command.options:
            if option.default is not None and not self._given.has(option.key):
                self._given.add(option.key, option.default)
        return self._given

    def _place(self) -> None:
        """Words by position fill what no flag has filled yet; the last argument may take all that are left."""
        words = self._positions
        for argument in self._command.arguments:
            if self._given.has(argument.key) and not (argument.many and words):
                continue
            taken, words = (words, []) if argument.many else (words[:1], words[1:])
            for word in taken:
                self._given.add(argument.key, word)
            if argument.required and not self._given.has(argument.key):
                raise UsageError(f"{argument.name} is missing: {argument.help}")
        if words:
            raise UsageError(f"{words[0]!r} is one word too many")


def _check(option: Option, name: str, text: str) -> None:
    if option.choices and text not in option.choices:
        raise UsageError(f"{name} {text}: choose one of {', '.join(option.choices)}")
    if option.number:
        try:
            int(text)
        except ValueError as error:
            raise UsageError(f"{name} {text}: a whole number is expected") from error


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?`, or nothing when nothing is near."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def usage(path: str, command: Command) -> str:
    parts = [f"ottla {path}"]
    for argument in () if command.form else command.arguments:
        shown = f"{argument.name}..." if argument.many else argument.name
        parts.append(shown if argument.required else f"[{shown}]")
    if command.form:
        parts.append(command.form)
    parts.append("[options]")
    return " ".join(parts)


def help_text(path: str, command: Command, width: int = 100) -> str:
    """Summary, usage, examples first (they teach most), then every argument and option."""
    sections = [command.summary, f"usage: {usage(path, command)}"]
    if command.examples:
        sections.append("examples:\n" + "\n".join(_example(*example) for example in command.examples))
    if command.details:
        sections.append(command.details.strip("\n"))
    if command.arguments:
        rows = [(argument.name, _argument_help(argument)) for argument in command.arguments]
        sections.append("arguments:\n" + two_columns(rows, width))
    rows = [(_names(option), _option_help(option)) for option in (*command.options, HELP) if not option.hidden]
    sections.append("options:\n" + two_columns(rows, width))
    return "\n\n".join(sections) + "\n"


def _example(why: str, line: str) -> str:
    return f"  # {why}\n  {line}" if why else f"  {line}"


def _names(option: Option) -> str:
    """The first two; further ones are what Kafka's tools call the same thing, and only have to work."""
    names = ", ".join(sorted(option.names[:2], key=len))
    return f"{names} {option.value}" if option.value else names


def _argument_help(argument: Argument) -> str:
    return f"{argument.help} (also {', '.join(argument.flags)})" if argument.flags else argument.help


def _option_help(option: Option) -> str:
    notes = [option.help]
    if option.choices:
        notes.append(f"One of {', '.join(option.choices)}.")
    if option.many:
        notes.append("May be repeated.")
    if option.default:
        notes.append(f"Default: {option.default}.")
    return " ".join(notes)


def two_columns(rows: Sequence[tuple[str, str]], width: int) -> str:
    """Names to the left, wrapped text to the right; a long name gets a line of its own."""
    import textwrap

    left = min(max(len(name) for name, _ in rows), 30) + 4
    lines: list[str] = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(width - left, 30))
        fits = len(name) <= left - 4
        if not fits:
            lines.append(f"  {name}")
        for index, part in enumerate(wrapped):
            lines.append(f"  {name if fits and index == 0 else '':<{left - 2}}{part}")
    return "\n".join(lines)
