"""From a tree to canonical text, as Square's Wire prints it: what is stored, compared and hashed.

No comments; two blanks; syntax, package, imports, options, messages, enums, extends, services; in a message reserved
first, then options, fields, oneofs, groups, extensions, extends and nested types. A blank line inside something nested
carries its indentation, as theirs does.
"""

from collections.abc import Iterable

from ottla.registry.schemas.protobuf.tokens import quoted
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
    MapOf,
    Message,
    Number,
    OneOf,
    Option,
    Options,
    Range,
    Reserved,
    Rpc,
    Service,
    TypeName,
    Value,
    Values,
    Word,
    option,
)

Lines = list[str]


def printed(file: File) -> str:
    return "".join(f"{line}\n" for line in _file(file))


def type_text(name: TypeName) -> str:
    return f"map<{name.key}, {name.value}>" if isinstance(name, MapOf) else name


def _file(file: File) -> Lines:
    lines: Lines = []
    if file.syntax is not None:
        lines.append(f'syntax = "{file.syntax}";')
    if file.edition is not None:
        lines.append(f'edition = "{file.edition}";')
    if file.package is not None:
        lines.append(f"package {file.package};")
    if file.imports:
        lines.append("")
        for kind in ("", "weak", "public"):
            words = f"import {kind} ".replace("  ", " ")
            lines += [f"{words}{quoted(each.path.encode())};" for each in file.imports if each.kind == kind]
    if file.options:
        lines.append("")
        lines += _statements(file.options)
    if file.messages or file.enums:
        lines.append("")
        for message in file.messages:
            lines += _message(message, bare_names=file.edition is not None)
        for enum in file.enums:
            lines += _enum(enum, bare_names=file.edition is not None)
    if file.extends:
        lines.append("")
        for extend in file.extends:
            lines += _extend(extend, bare_names=file.edition is not None)
    if file.services:
        lines.append("")
        for service in file.services:
            lines += _service(service)
    return lines


def _indented(lines: Iterable[str]) -> Lines:
    return ["  " + line for line in lines]


def _block(header: str, body: Lines) -> Lines:
    """A body begins with the end of its header's line: an empty one, for what begins on the next."""
    if not body:
        return [header + " {}"]
    assert body[0] == ""
    return [header + " {", *body[1:], "}"]


def _message(message: Message, *, bare_names: bool) -> Lines:
    return _block(f"message {message.name}", _members(message, bare_names=bare_names))


def _members(message: Message, *, bare_names: bool) -> Lines:
    lines: Lines = []

    def part(members: Iterable[Lines]) -> None:
        found = [line for member in members for line in _indented(member)]
        if found:
            lines.append("")
            lines.extend(found)

    part(_reserved(each, MAX_FIELD_NUMBER, bare_names=bare_names) for each in message.reserved)
    part([_statements(message.options)])
    part(_field(each) for each in message.fields)
    part(_oneof(each, bare_names=bare_names) for each in message.oneofs)
    part(_group(each, bare_names=bare_names) for each in message.groups)
    part(_extensions(each) for each in message.extensions)
    part(_extend(each, bare_names=bare_names) for each in message.extends)
    part(
        [
            *(_message(each, bare_names=bare_names) for each in message.messages),
            *(_enum(each, bare_names=bare_names) for each in message.enums),
        ]
    )
    return lines


def _field(field: Field) -> Lines:
    label = f"{field.label} " if field.label else ""
    options = list(field.options)
    if field.default is not None:
        options.append(option("default", field.default))
    if field.json_name is not None:
        options.append(option("json_name", field.json_name))
    return _with_options(f"{label}{type_text(field.type)} {field.name} = {field.number}", options)


def _group(group: Group, *, bare_names: bool) -> Lines:
    label = f"{group.label} " if group.label else ""
    header = [f"{label}group {group.name} = {group.number}"]
    if group.options:
        header = _joined(header[0] + " ", _bracketed(group.options))
    return [*header[:-1], *_block(header[-1], _members(group.body, bare_names=bare_names))]


def _oneof(oneof: OneOf, *, bare_names: bool) -> Lines:
    lines: Lines = []
    if oneof.options:
        lines += ["", *_indented(_statements(oneof.options))]
    if oneof.fields:
        lines += ["", *(line for each in oneof.fields for line in _indented(_field(each)))]
    if oneof.groups:
        lines += ["", *(line for each in oneof.groups for line in _indented(_group(each, bare_names=bare_names)))]
    return _block(f"oneof {oneof.name}", lines)


def _extend(extend: Extend, *, bare_names: bool) -> Lines:
    lines: Lines = []
    if extend.fields:
        lines += ["", *(line for each in extend.fields for line in _indented(_field(each)))]
    if extend.groups:
        lines += ["", *(line for each in extend.groups for line in _indented(_group(each, bare_names=bare_names)))]
    return _block(f"extend {extend.name}", lines)


def _enum(enum: Enum, *, bare_names: bool) -> Lines:
    lines = [line for each in enum.reserved for line in _reserved(each, MAX_ENUM_NUMBER, bare_names=bare_names)]
    lines += _statements(enum.options)
    lines += [line for each in enum.constants for line in _constant(each)]
    return _block(f"enum {enum.name}", ["", *_indented(lines)] if lines else [])


def _constant(constant: Constant) -> Lines:
    return _with_options(f"{constant.name} = {constant.number}", constant.options)


def _reserved(reserved: Reserved, maximum: int, *, bare_names: bool) -> Lines:
    def value(of: Range | str) -> str:
        if isinstance(of, Range):
            return _range(of, maximum)
        return of if bare_names else quoted(of.encode())

    return [f"reserved {', '.join(map(value, reserved.values))};"]


def _extensions(extensions: Extensions) -> Lines:
    ranges = ", ".join(_range(each, MAX_FIELD_NUMBER) for each in extensions.ranges)
    return _with_options(f"extensions {ranges}", extensions.options)


def _range(of: Range, maximum: int) -> str:
    if of.last is None:
        return str(of.first)
    return f"{of.first} to {'max' if of.last == maximum else of.last}"


def _service(service: Service) -> Lines:
    lines: Lines = []
    if service.options:
        lines += ["", *_indented(_statements(service.options))]
    if service.rpcs:
        lines += ["", *(line for each in service.rpcs for line in _indented(_rpc(each)))]
    return _block(f"service {service.name}", lines)


def _rpc(rpc: Rpc) -> Lines:
    request = ("stream " if rpc.request_stream else "") + rpc.request
    response = ("stream " if rpc.response_stream else "") + rpc.response
    line = f"rpc {rpc.name} ({request}) returns ({response})"
    if not rpc.options:
        return [line + ";"]
    return [line + " {", *_indented(_statements(rpc.options)), "};"]


# --- options ---


def _statements(options: Options) -> Lines:
    return [line for each in options for line in _ended(_joined("option ", _option(each)), ";")]


def _with_options(line: str, options: Iterable[Option]) -> Lines:
    """A declaration that ends with a semicolon, and may have options before it."""
    found = tuple(options)
    if not found:
        return [line + ";"]
    return _ended(_joined(line + " ", _bracketed(found)), ";")


def _bracketed(options: Options) -> Lines:
    if len(options) == 1:
        return _ended(_joined("[", _option(options[0])), "]")
    return ["[", *_listed([_option(each) for each in options]), "]"]


def _option(of: Option) -> Lines:
    name = ".".join(f"({part.name})" if part.custom else part.name for part in of.parts)
    value = of.value
    if isinstance(value, Values) and len(value.items) == 1:
        return _ended(_joined(f"{name} = [", _value(value.items[0])), "]")
    return _joined(f"{name} = ", _value(value))


def _value(value: Value) -> Lines:
    match value:
        case Word(text) | Number(text):
            return [text]
        case Aggregate(entries):
            return ["{", *_listed([_joined(f"{key}: ", _value(each)) for key, each in entries]), "}"]
        case Values(items):
            return ["[", *_listed([_value(each) for each in items]), "]"]
        case _:
            return [quoted(value)]


def _listed(items: list[Lines]) -> Lines:
    last = len(items) - 1
    return [line for n, item in enumerate(items) for line in _indented(_ended(item, "," if n < last else ""))]


def _joined(before: str, lines: Lines) -> Lines:
    return [before + lines[0], *lines[1:]]


def _ended(lines: Lines, after: str) -> Lines:
    return [*lines[:-1], lines[-1] + after]
