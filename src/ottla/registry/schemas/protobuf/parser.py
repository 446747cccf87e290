"""From the text of a .proto file to its tree: recursive descent, with a limit to every recursion.

As forgiving as Wire, which Confluent's server parses with, where that costs nothing: what a name means, whether a
number is used twice, whether an option exists is not asked here but in `validity`, and only of new schemas.
"""

import re
from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from ottla.registry.schemas.base import Budget
from ottla.registry.schemas.protobuf.tokens import Token, syntax_error, tokens_of, unquoted
from ottla.registry.schemas.protobuf.tree import (
    MAX_ENUM_NUMBER,
    MAX_FIELD_NUMBER,
    Aggregate,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Import,
    ImportKind,
    Label,
    MapOf,
    Message,
    NamePart,
    Number,
    OneOf,
    Option,
    Options,
    Range,
    Reserved,
    Rpc,
    Scalar,
    Service,
    TypeName,
    Value,
    Values,
    Word,
)

MAX_NESTING: Final = 32
"""Messages in messages, or values in values: protoc's own limit."""
CHARACTERS_PER_STEP: Final = 32
"""What a step of a budget reads, if most of it is comments: 200,000 steps are six megabytes."""
EDITIONS: Final = ("2023", "2024")

T = TypeVar("T")

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME: Final = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_INTEGER: Final = re.compile(r"0[xX][0-9A-Fa-f]+|0[0-7]*|[1-9][0-9]*")
_FLOAT: Final = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INT32: Final = range(-(1 << 31), 1 << 31)


def parse(text: str, budget: Budget) -> File:
    """Raises InvalidSchema, and TooComplex if the text is longer than the budget."""
    budget.spend(1 + len(text) // CHARACTERS_PER_STEP)
    return _Parser(text, budget).file()


def integer(text: str) -> int:
    """Of a number as it is written in a .proto file. Raises ValueError if it is none, or has a fraction."""
    digits = text.removeprefix("-")
    if len(digits) > 32 or not _INTEGER.fullmatch(digits):
        raise ValueError(f"{text!r} is no integer")
    octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
    value = int(digits, 8 if octal else 0)
    return -value if text.startswith("-") else value


class _Parts:
    """What a file or a message is being made of."""

    __slots__ = ("enums", "extends", "extensions", "fields", "groups", "messages", "oneofs", "options", "reserved")

    def __init__(self) -> None:
        self.options: list[Option] = []
        self.messages: list[Message] = []
        self.enums: list[Enum] = []
        self.extends: list[Extend] = []
        self.reserved: list[Reserved] = []
        self.fields: list[Field] = []
        self.oneofs: list[OneOf] = []
        self.groups: list[Group] = []
        self.extensions: list[Extensions] = []

    def message(self, name: str) -> Message:
        return Message(
            name,
            reserved=tuple(self.reserved),
            options=tuple(self.options),
            fields=tuple(self.fields),
            oneofs=tuple(self.oneofs),
            groups=tuple(self.groups),
            extensions=tuple(self.extensions),
            extends=tuple(self.extends),
            messages=tuple(self.messages),
            enums=tuple(self.enums),
        )


class _Parser:
    __slots__ = ("_edition", "_next", "_package", "_syntax", "_text", "_tokens")

    def __init__(self, text: str, budget: Budget) -> None:
        self._text = text
        self._tokens = tokens_of(text, budget)
        self._next = 0
        self._syntax: str | None = None
        self._edition: str | None = None
        self._package: str | None = None

    # --- files ---

    def file(self) -> File:
        parts = _Parts()
        imports: list[Import] = []
        services: list[Service] = []
        first = True
        while (token := self._peek()).kind != "end":
            match token.text:
                case "syntax" | "edition":
                    if not first:
                        self._fail(f"{token.text!r} element must be the first declaration in a file")
                    self._language()
                case "package":
                    if self._package is not None:
                        self._fail("too many package definitions")
                    self._take()
                    self._package = self._full_name()
                    self._require(";")
                case "import":
                    imports.append(self._import())
                case "service":
                    services.append(self._service())
                case ";":
                    self._take()
                case _:
                    if not self._type_or_option(parts, depth=0):
                        self._fail(f"unexpected label: {token.text}")
            first = False
        return File(
            syntax=self._syntax,
            edition=self._edition,
            package=self._package,
            imports=tuple(imports),
            options=tuple(parts.options),
            messages=tuple(parts.messages),
            enums=tuple(parts.enums),
            extends=tuple(parts.extends),
            services=tuple(services),
        )

    def _language(self) -> None:
        keyword = self._take().text
        self._require("=")
        at = self._peek()
        value = self._string_text()
        if keyword == "syntax":
            if value not in {"proto2", "proto3"}:
                self._fail(f"unexpected syntax: {value}; proto2 and proto3 are known", at)
            self._syntax = value
        else:
            if value not in EDITIONS:
                self._fail(f"unexpected edition: {value}; {' and '.join(EDITIONS)} are known", at)
            self._edition = value
        self._require(";")

    def _import(self) -> Import:
        self._take()
        kind: ImportKind = ""
        match self._peek().text:
            case "public" | "weak" as kind:
                self._take()
        path = self._string_text()
        self._require(";")
        return Import(path, kind)

    def _type_or_option(self, parts: _Parts, depth: int) -> bool:
        """Takes what may stand in a file and in a message alike, if that is what comes next."""
        match self._peek().text:
            case "option":
                parts.options.append(self._option_statement())
            case "message":
                self._take()
                parts.messages.append(self._message(self._name(), depth + 1))
            case "enum":
                parts.enums.append(self._enum())
            case "extend":
                parts.extends.append(self._extend(depth))
            case _:
                return False
        return True

    # --- messages ---

    def _message(self, name: str, depth: int) -> Message:
        """After its name."""
        if depth > MAX_NESTING:
            self._fail(f"messages are nested deeper than {MAX_NESTING}")
        parts = _Parts()
        self._require("{")
        while not self._took("}"):
            self._member(parts, depth)
        return parts.message(name)

    def _member(self, parts: _Parts, depth: int) -> None:
        match self._peek().text:
            case ";":
                self._take()
            case "reserved":
                parts.reserved.append(self._reserved(MAX_FIELD_NUMBER))
            case "oneof":
                parts.oneofs.append(self._oneof(depth))
            case "extensions":
                parts.extensions.append(self._extensions())
            case _:
                if not self._type_or_option(parts, depth):
                    self._field_or_group(parts.fields, parts.groups, depth)

    def _field_or_group(self, fields: list[Field], groups: list[Group], depth: int) -> None:
        token = self._peek()
        label: Label | None = None
        match token.text:
            case "optional" | "required" | "repeated" as label:
                self._take()
                if label == "required" and self._syntax == "proto3":
                    self._fail("'required' label forbidden in proto3 field declarations", token)
                if label != "repeated" and self._edition is not None:
                    self._fail(
                        f"{label!r} label forbidden in files with an edition, see features.field_presence", token
                    )
        if self._peek().text == "group":
            self._take()
            groups.append(self._group(label, depth))
            return
        kind = self._type()
        if isinstance(kind, MapOf) and label is not None:
            self._fail("'map' type cannot have label", token)
        if label is None and not isinstance(kind, MapOf) and self._syntax != "proto3" and self._edition is None:
            self._fail(f"unexpected label: {token.text}; a proto2 field is optional, required or repeated", token)
        fields.append(self._field(label, kind))

    def _type(self) -> TypeName:
        if self._peek().text == "map" and self._peek(1).text == "<":
            self._take()
            self._take()
            key = self._full_name()
            self._require(",")
            value = self._full_name()
            self._require(">")
            return MapOf(key, value)
        return self._full_name()

    def _field(self, label: Label | None, kind: TypeName) -> Field:
        """After its type."""
        name = self._name()
        self._require("=")
        number = self._integer()
        default: Scalar | None = None
        json_name: bytes | None = None
        options: list[Option] = []
        for each in self._bracketed():
            if each.name == "default" and not each.custom:
                if isinstance(each.value, Aggregate | Values):
                    self._fail(f"the default of {name} is not a single value")
                default = each.value
            elif each.name == "json_name" and not each.custom:
                if not isinstance(each.value, bytes):
                    self._fail(f"the json_name of {name} is not a string")
                json_name = each.value
            else:
                options.append(each)
        self._require(";")
        return Field(label, kind, name, number, tuple(options), default, json_name)

    def _group(self, label: Label | None, depth: int) -> Group:
        """After the word itself."""
        name = self._name()
        self._require("=")
        number = self._integer()
        options = self._bracketed()
        return Group(label, number, self._message(name, depth + 1), options)

    def _oneof(self, depth: int) -> OneOf:
        self._take()
        name = self._name()
        fields: list[Field] = []
        groups: list[Group] = []
        options: list[Option] = []
        self._require("{")
        while not self._took("}"):
            match self._peek().text:
                case ";":
                    self._take()
                case "option":
                    options.append(self._option_statement())
                case "optional" | "required" | "repeated" as label:
                    self._fail(f"a field in a oneof has no label, not {label!r} either")
                case "group":
                    self._take()
                    groups.append(self._group(None, depth))
                case _:
                    fields.append(self._field(None, self._type()))
        return OneOf(name, tuple(options), tuple(fields), tuple(groups))

    def _extend(self, depth: int) -> Extend:
        self._take()
        name = self._full_name()
        fields: list[Field] = []
        groups: list[Group] = []
        self._require("{")
        while not self._took("}"):
            if not self._took(";"):
                self._field_or_group(fields, groups, depth)
        return Extend(name, tuple(fields), tuple(groups))

    def _extensions(self) -> Extensions:
        self._take()
        ranges = self._listed(lambda: self._range(MAX_FIELD_NUMBER))
        options = self._bracketed()
        self._require(";")
        return Extensions(ranges, options)

    def _reserved(self, maximum: int) -> Reserved:
        self._take()

        def value() -> Range | str:
            token = self._peek()
            if token.kind == "string":
                return self._string_text()
            return self._name() if token.kind == "word" else self._range(maximum)

        values = self._listed(value)
        self._require(";")
        return Reserved(values)

    def _range(self, maximum: int) -> Range:
        token = self._peek()
        first = self._integer()
        if self._peek().text != "to":
            return Range(first)
        self._take()
        if self._peek().text == "max":
            self._take()
            return Range(first, maximum)
        last = self._integer()
        if last < first:
            self._fail(f"the range {first} to {last} has nothing in it", token)
        return Range(first, last)

    # --- enums and services ---

    def _enum(self) -> Enum:
        self._take()
        name = self._name()
        reserved: list[Reserved] = []
        options: list[Option] = []
        constants: list[Constant] = []
        self._require("{")
        while not self._took("}"):
            after = self._peek(1).text
            match self._peek().text:
                case ";":
                    self._take()
                case "option" if after != "=":
                    options.append(self._option_statement())
                case "reserved" if after != "=":
                    reserved.append(self._reserved(MAX_ENUM_NUMBER))
                case _:
                    constants.append(self._constant())
        return Enum(name, tuple(reserved), tuple(options), tuple(constants))

    def _constant(self) -> Constant:
        name = self._name()
        self._require("=")
        number = self._integer()
        options = self._bracketed()
        self._require(";")
        return Constant(name, number, options)

    def _service(self) -> Service:
        self._take()
        name = self._name()
        options: list[Option] = []
        rpcs: list[Rpc] = []
        self._require("{")
        while not self._took("}"):
            match self._peek().text:
                case ";":
                    self._take()
                case "option":
                    options.append(self._option_statement())
                case "rpc":
                    rpcs.append(self._rpc())
                case other:
                    self._fail(f"unexpected label: {other}")
        return Service(name, tuple(options), tuple(rpcs))

    def _rpc(self) -> Rpc:
        self._take()
        name = self._name()
        request_stream, request = self._rpc_type()
        if self._take().text != "returns":
            self._fail("expected 'returns'", self._tokens[self._next - 1])
        response_stream, response = self._rpc_type()
        options: list[Option] = []
        if self._took("{"):
            while not self._took("}"):
                if not self._took(";"):
                    options.append(self._option_statement())
            self._took(";")
        else:
            self._require(";")
        return Rpc(name, request, response, request_stream, response_stream, tuple(options))

    def _rpc_type(self) -> tuple[bool, str]:
        self._require("(")
        stream = self._peek().text == "stream" and self._peek(1).kind == "word"
        if stream:
            self._take()
        name = self._full_name()
        self._require(")")
        return stream, name

    # --- options ---

    def _option_statement(self) -> Option:
        token = self._take()
        if token.text != "option":
            self._fail(f"unexpected label: {token.text}", token)
        found = self._option()
        self._require(";")
        return found

    def _bracketed(self) -> Options:
        if not self._took("["):
            return ()
        found = self._listed(self._option)
        self._require("]")
        return found

    def _option(self) -> Option:
        parts: list[NamePart] = []
        while not parts or self._peek().text.startswith("."):
            if parts and self._peek().text == ".":
                self._take()
            if self._took("("):
                parts.append(NamePart(self._full_name(), custom=True))
                self._require(")")
                continue
            token = self._peek()
            name = self._full_name()
            if name.startswith(".") != bool(parts):
                self._fail(f"expected the name of an option, not {name!r}", token)
            parts += [NamePart(part) for part in name.removeprefix(".").split(".")]
        self._require("=")
        return Option(tuple(parts), self._value(depth=0))

    def _value(self, depth: int) -> Value:
        if depth > MAX_NESTING:
            self._fail(f"the values of an option are nested deeper than {MAX_NESTING}")
        token = self._peek()
        match token.text:
            case "{":
                return self._aggregate("}", depth)
            case "<":
                return self._aggregate(">", depth)
            case "[":
                self._take()
                items: list[Value] = []
                while not self._took("]"):
                    items.append(self._value(depth + 1))
                    if self._peek().text != "]":
                        self._require(",")
                return Values(tuple(items))
        return self._scalar()

    def _scalar(self) -> Scalar:
        token = self._take()
        if token.kind == "string":
            self._next -= 1
            return self._string()
        if token.text in {"-", "+"}:
            sign = token.text.replace("+", "")
            token = self._take()
            if token.kind == "number" or token.text in {"inf", "nan", "infinity"}:
                return Number(sign + self._checked_number(token))
        elif token.kind == "number":
            return Number(self._checked_number(token))
        elif token.kind == "word" and _NAME.fullmatch(token.text):
            return Word(token.text)
        self._fail(f"expected a value but was {token.text!r}", token)

    def _checked_number(self, token: Token) -> str:
        if token.kind == "number" and not (_INTEGER.fullmatch(token.text) or _FLOAT.fullmatch(token.text)):
            self._fail(f"expected a number but was {token.text}", token)
        return token.text

    def _aggregate(self, closing: str, depth: int) -> Aggregate:
        self._take()
        entries: dict[str, Value] = {}
        while not self._took(closing):
            key = self._key()
            if self._peek().text not in {"{", "<"}:
                self._require(":")
            value = self._value(depth + 1)
            entries[key] = _together(entries[key], value) if key in entries else value
            if not self._took(","):
                self._took(";")
        return Aggregate(tuple(entries.items()))

    def _key(self) -> str:
        if not self._took("["):
            return self._name()
        name = self._full_name()
        if self._took("/"):  # of an Any: [type.googleapis.com/a.Message]
            name += "/" + self._full_name()
        self._require("]")
        return f"[{name}]"

    # --- tokens ---

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def _took(self, mark: str) -> bool:
        token = self._tokens[self._next]
        if token.text == mark and token.kind == "mark":
            self._next += 1
            return True
        if token.kind == "end":
            self._fail("unexpected end of file")
        return False

    def _require(self, mark: str) -> None:
        if not self._took(mark):
            self._fail(f"expected {mark!r} but was {self._peek().text!r}")

    def _listed(self, read: Callable[[], T]) -> tuple[T, ...]:
        found = [read()]
        while self._took(","):
            found.append(read())
        return tuple(found)

    def _name(self) -> str:
        token = self._take()
        if token.kind != "word" or not _NAME.fullmatch(token.text):
            self._fail(f"expected a name but was {token.text!r}", token)
        return token.text

    def _full_name(self) -> str:
        token = self._take()
        if token.kind != "word" or not _FULL_NAME.fullmatch(token.text):
            self._fail(f"expected a name but was {token.text!r}", token)
        return token.text

    def _integer(self) -> int:
        negative = self._took("-")
        token = self._take()
        try:
            value = integer(token.text)
        except ValueError:
            self._fail(f"expected an integer but was {token.text!r}", token)
        value = -value if negative else value
        if value not in _INT32:
            self._fail(f"{value} is too large for an integer", token)
        return value

    def _string(self) -> bytes:
        token = self._peek()
        if token.kind != "string":
            self._fail(f"expected a quoted string but was {token.text!r}")
        value = b""
        while self._peek().kind == "string":
            token = self._take()
            try:
                value += unquoted(token.text)
            except (ValueError, OverflowError) as error:
                raise syntax_error(self._text, token.at, f"a string that cannot be read: {error}") from None
        return value

    def _string_text(self) -> str:
        token = self._peek()
        try:
            return self._string().decode("utf-8")
        except UnicodeDecodeError:
            self._fail("a string that is not UTF-8", token)

    def _fail(self, what: str, token: Token | None = None) -> NoReturn:
        raise syntax_error(self._text, (token or self._peek()).at, what)


def _together(earlier: Value, later: Value) -> Value:
    """Of a key that is given more than once: what was said each time, in one list."""
    first = earlier.items if isinstance(earlier, Values) else (earlier,)
    return Values(first + (later.items if isinstance(later, Values) else (later,)))
