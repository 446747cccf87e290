"""Writes src/ottla/protocol/_generated from Kafka's message schemas.

    mvn -f tools/protocol-jars.xml dependency:copy -DoutputDirectory=DIR
    python tools/generate_protocol.py DIR --newer DIR/kafka-clients-4.4.0.jar [--check]

The schemas are JSON files inside the jars of Apache Kafka 4.3.1. `--newer` is a later kafka-clients jar, of which only
ApiVersions is taken (its version 5 is what Java 4.4 clients ask first). The output depends on nothing but the schemas;
`--check` compares instead of writing.

How a message becomes code: parse (schema section), then for each version one flat decoder and one flat encoder (a
pending run of fixed-width fields is flushed as a single struct call), then equal texts are merged into one function.
"""

import argparse
import json
import keyword
import re
import struct
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/ottla/protocol/_generated"
ARTIFACTS = (
    "kafka-clients",
    "kafka-metadata",
    "kafka-group-coordinator",
    "kafka-transaction-coordinator",
    "kafka-share-coordinator",
    "kafka-storage",
    "kafka-raft",
)
KAFKA = "4.3.1"
FROM_NEWER = ("ApiVersionsRequest", "ApiVersionsResponse")

# ---------------------------------------------------------------------------------------------------- the schemas

FOREVER = 32767
FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
PYTHON_TYPES = {"bool": "bool", "float64": "float", "uuid": "bytes", "string": "str", "bytes": "bytes"}
SCALARS = (*FORMATS, "string", "bytes", "records")


@dataclass(frozen=True)
class Versions:
    low: int
    high: int

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        if not text or text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), FOREVER)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))


@dataclass
class Field:
    name: str
    owner: str
    kind: str
    """A scalar's name, or a struct's."""
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    default: str
    ignorable: bool
    flexible: Versions | None
    """Set where a field has its own rule: the client id of the request header is never compact."""

    @property
    def is_struct(self) -> bool:
        return not self.is_array and self.kind not in SCALARS

    @property
    def is_fixed(self) -> bool:
        return not self.is_array and self.kind in FORMATS

    @property
    def label(self) -> str:
        return f"{self.owner}.{self.name}"


@dataclass
class StructSchema:
    name: str
    fields: list[Field]


@dataclass
class Schema:
    name: str
    type: str
    key: int
    versions: Versions
    first_flexible: int
    listeners: tuple[str, ...]
    latest_unstable: bool
    origin: str
    structs: dict[str, StructSchema] = field(default_factory=dict)
    """In an order in which each needs only those before it; the message itself is the last."""

    @property
    def top(self) -> StructSchema:
        return self.structs[self.name]

    @property
    def module(self) -> str:
        return snake(self.name)

    @property
    def response(self) -> str:
        """What answers this request."""
        return self.name.removesuffix("Request") + "Response"

    @property
    def numbers(self) -> range:
        return range(self.versions.low, self.versions.high + 1)


def snake(name: str) -> str:
    text = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).lower()


def without_comments(text: str) -> str:
    return re.sub(r"^\s*//.*$", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL), flags=re.MULTILINE)


def parse_schema(text: str, origin: str) -> Schema | None:
    """None for the keys of the ZooKeeper time, which have no valid version left."""
    raw = json.loads(without_comments(text))
    versions = Versions.parse(raw["validVersions"])
    if versions.high < versions.low:
        return None
    flexible = Versions.parse(raw["flexibleVersions"])
    schema = Schema(
        name=raw["name"],
        type=raw["type"],
        key=raw.get("apiKey", -1),
        versions=versions,
        first_flexible=flexible.low if flexible.high >= 0 else FOREVER + 1,
        listeners=tuple(raw.get("listeners", ())),
        latest_unstable=raw.get("latestVersionUnstable", False),
        origin=origin,
    )
    common = {entry["name"]: entry["fields"] for entry in raw.get("commonStructs", ())}
    add_struct(schema, schema.name, raw["fields"], common)
    return schema


def add_struct(schema: Schema, name: str, raw_fields: list[dict[str, Any]], common: dict[str, Any]) -> None:
    fields = []
    for raw in raw_fields:
        parsed = parse_field(name, raw)
        if parsed.kind not in SCALARS and parsed.kind not in schema.structs:
            add_struct(schema, parsed.kind, raw.get("fields") or common[parsed.kind], common)
        fields.append(parsed)
    names = [f.name for f in fields]
    assert len(set(names)) == len(names) and not any(map(keyword.iskeyword, names)), names
    schema.structs[name] = StructSchema(name, fields)


def parse_field(owner: str, raw: dict[str, Any]) -> Field:
    kind = raw["type"]
    tagged = Versions.parse(raw.get("taggedVersions"))
    own_rule = raw.get("flexibleVersions")
    default = raw.get("default")
    return Field(
        name=snake(raw["name"]),
        owner=owner,
        kind=kind.removeprefix("[]"),
        is_array=kind.startswith("[]"),
        # A field without versions has those in which it is tagged, as in Kafka's FieldSpec.
        versions=Versions.parse(raw["versions"]) if "versions" in raw else tagged,
        nullable=Versions.parse(raw.get("nullableVersions")),
        tagged=tagged,
        tag=raw.get("tag", -1),
        # JSON's null counts as "no default given" (an empty list, a new struct); only the text "null" means null.
        default="" if default is None else str(default),
        ignorable=raw.get("ignorable", False),
        flexible=Versions.parse(own_rule) if own_rule else None,
    )


# ------------------------------------------------------------------------------------------ defaults and their tests


def default_code(f: Field) -> str:
    """The expression a decoder assigns where a version lacks the field."""
    if f.default == "null" or (f.kind == "records" and not f.is_array):
        return "None"
    if f.is_array:
        return "[]"
    if f.is_struct:
        return default_name(f)
    if f.kind == "bool":
        return str(f.default.lower() == "true")
    if f.kind == "string":
        return json.dumps(f.default)
    if f.kind == "bytes":
        return 'b""'
    if f.kind == "uuid":
        return "ZERO_UUID"
    if f.kind == "float64":
        return repr(float(f.default or 0))
    return str(int(f.default or "0", 0))


def default_name(f: Field) -> str:
    return f"_DEFAULT_{snake(f.kind).upper()}"


def is_set(f: Field, value: str) -> str:
    """The condition under which `value` differs from the default: Kafka's rule for tags and for ignorable fields."""
    default = default_code(f)
    if default == "None":
        return f"{value} is not None"
    if f.is_array or f.kind == "bytes":
        return f"{value} is None or len({value}) > 0" if f.nullable.high >= 0 else f"len({value}) > 0"
    if f.is_struct:
        return f"{value} is not {default} and {value} != {default}"
    if f.kind == "bool":
        return f"not {value}" if default == "True" else value
    return f"{value} != {default}"


def may_be_set(f: Field, value: str) -> str:
    return f"{value} is not {default_code(f)}" if f.is_struct else is_set(f, value)


def minimum_size(schema: Schema, struct_name: str, version: int) -> int:
    """Fewest bytes that the struct can take on the wire: what a claimed array count is checked against."""
    flexible = version >= schema.first_flexible
    size = int(flexible)
    for f in schema.structs[struct_name].fields:
        if version in f.versions and version not in f.tagged:
            size += minimum_field_size(schema, f, version, flexible)
    return size


def minimum_field_size(schema: Schema, f: Field, version: int, flexible: bool) -> int:
    if f.is_fixed:
        return struct.calcsize(">" + FORMATS[f.kind])
    if f.is_struct:
        return 1 if version in f.nullable else minimum_size(schema, f.kind, version)
    if flexible:
        return 1
    return 2 if f.kind == "string" and not f.is_array else 4


# ----------------------------------------------------------------------------------------------------- code writing


class Code:
    """Lines under construction, plus a run of fixed-width values that waits to become one struct call."""

    def __init__(self, schema: Schema, version: int, formats: set[str]) -> None:
        self.schema = schema
        self.version = version
        self.flexible = version >= schema.first_flexible
        self.formats = formats
        self.lines: list[str] = []
        self.depth = 2
        self.run: list[tuple[str, str]] = []
        self.names = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def is_compact(self, f: Field) -> bool:
        return self.flexible and (f.flexible is None or self.version in f.flexible)

    def present(self, f: Field) -> bool:
        return self.version in f.versions and self.version not in f.tagged

    def tags_of(self, name: str) -> list[Field]:
        fields = self.schema.structs[name].fields
        here = (f for f in fields if self.version in f.versions and self.version in f.tagged)
        return sorted(here, key=lambda f: f.tag)

    def struct_name(self, letters: Sequence[str], prefix: str) -> str:
        self.formats.add(prefix + " " + " ".join(letters))
        return prefix + "_" + "".join({"?": "t", "16s": "U"}.get(letter, letter) for letter in letters)


TEXT_READERS = {
    "string": 'str(buf[pos:end], "utf-8")',
    "bytes": "bytes(buf[pos:end])",
    "records": "view[pos:end]",
}


class DecoderCode(Code):
    def build(self) -> list[str]:
        self.line("size = len(buf)")
        if any(f.kind == "records" for s in self.schema.structs.values() for f in s.fields):
            self.line("view = memoryview(buf)")
        root = self.struct(self.schema.name)
        self.flush()
        self.line(f"return {root}, pos")
        return self.lines

    def flush(self) -> None:
        if not self.run:
            return
        letters = [letter for letter, _ in self.run]
        targets = ", ".join(target for _, target in self.run)
        if letters == ["B"]:
            self.line(f"{targets} = buf[pos]")
        elif len(letters) == 1:
            self.line(f"({targets},) = {self.struct_name(letters, '_r')}(buf, pos)")
        else:
            self.line(f"{targets} = {self.struct_name(letters, '_r')}(buf, pos)")
        self.line(f"pos += {struct.calcsize('>' + ''.join(letters))}")
        self.run.clear()

    def struct(self, name: str) -> str:
        """Emits a struct's fields; its last run may still be pending."""
        variable = self.fresh("o")
        self.line(f"{variable} = new({class_name(self.schema, name)})")
        for f in self.schema.structs[name].fields:
            if not self.present(f):
                self.line(f"{variable}.{f.name} = {default_code(f)}")
        for f in self.schema.structs[name].fields:
            if self.present(f):
                self.field(f, f"{variable}.{f.name}")
        if self.flexible:
            self.tags(name, variable)
        return variable

    def field(self, f: Field, target: str, tagged: bool = False) -> None:
        if f.is_fixed:
            self.run.append((FORMATS[f.kind], target))
        elif f.is_array:
            self.array(f, target)
        elif f.is_struct:
            self.single(f, target, tagged)
        else:
            self.text(f, target)

    def length(self, f: Field, letter: str, reader: str) -> bool:
        """Reads a length into n at the end of the pending run. Says whether it is compact: then n is one too big."""
        compact = self.is_compact(f)
        if compact and f.kind == "records" and not f.is_array:
            self.records_length(reader)
            return compact
        self.run.append(("B" if compact else letter, "n"))
        self.flush()
        if compact:
            self.line("if n > 127:")
            self.line(f"    n, pos = {reader}(buf, pos, n)")
        return compact

    def records_length(self, reader: str) -> None:
        """Batches of 128 bytes to 2 MiB have a length of two or three bytes: these come with the run before them.

        The bytes are there even if the length is shorter: a partition, its topic and the message each end with tags.
        """
        self.run += [("B", "n"), ("B", "m"), ("B", "k")]
        width = struct.calcsize(">" + "".join(letter for letter, _ in self.run))
        self.flush()
        assert self.lines.pop().strip() == f"pos += {width}"
        self.line("if n < 128:")
        self.line(f"    pos += {width - 2}")
        self.line("elif m < 128:")
        self.line("    n += (m << 7) - 128")
        self.line(f"    pos += {width - 1}")
        self.line("elif k < 128:")
        self.line(f"    n += (m << 7) + (k << 14) - {128 + (128 << 7)}")
        self.line(f"    pos += {width}")
        self.line("else:")
        self.line(f"    n, pos = {reader}(buf, pos + {width - 2}, n)")

    def text(self, f: Field, target: str, element: bool = False) -> None:
        """string, bytes or records."""
        is_string = f.kind == "string"
        compact = self.length(f, "h" if is_string else "i", "long_string" if is_string else "long_varint")
        nullable = self.version in f.nullable and not element
        value = TEXT_READERS[f.kind]
        null, length = ("n == 0", "n - 1") if compact else ("n == -1", "n")
        if nullable:
            self.line(f"if {null}:")
            self.line(f"    {target} = None" if "(" not in target else f"    {target.format('None')}")
            self.line("else:")
            self.depth += 1
        self.line(f"end = pos + {length}")
        refused = [] if nullable and compact else ["n == 0" if compact else "n < 0"]
        self.line(f"if {' or '.join([*refused, 'end > size'])}:")
        self.line(f'    raise bad_length("{f.label}", {length}, size - pos)')
        self.line(f"{target} = {value}" if "(" not in target else target.format(value))
        self.line("pos = end")
        if nullable:
            self.depth -= 1

    def array(self, f: Field, target: str) -> None:
        compact = self.length(f, "i", "long_varint")
        nullable = self.version in f.nullable
        if nullable:
            self.line("if n == 0:" if compact else "if n == -1:")
            self.line(f"    {target} = None")
            self.line("else:")
            self.depth += 1
        if compact:
            self.line("n -= 1")
        least = self.element_size(f)
        need = "n" if least == 1 else f"n * {least}"
        self.line(f"if n < 0 or {need} > size - pos:" if not (nullable and compact) else f"if {need} > size - pos:")
        self.line(f'    raise bad_length("{f.label}", n, size - pos)')
        self.elements(f, target)
        if nullable:
            self.depth -= 1

    def element_size(self, f: Field) -> int:
        if f.kind in FORMATS:
            return struct.calcsize(">" + FORMATS[f.kind])
        if f.kind in SCALARS:
            return 1 if self.is_compact(f) else {"string": 2}.get(f.kind, 4)
        least = minimum_size(self.schema, f.kind, self.version)
        assert least > 0, f"an element of {f.label} may be empty: its count has no bound"
        return least

    def elements(self, f: Field, target: str) -> None:
        if f.kind == "uuid":
            self.line("end = pos + n * 16")
            self.line(f"{target} = [bytes(buf[i : i + 16]) for i in range(pos, end, 16)]")
            self.line("pos = end")
        elif f.kind in FORMATS:
            self.line(f'{target} = list(unpack_from(f">{{n}}{FORMATS[f.kind]}", buf, pos))')
            self.line(f"pos += n * {self.element_size(f)}" if self.element_size(f) > 1 else "pos += n")
        else:
            items = self.fresh("a")
            self.line(f"{target} = {items} = []")
            self.line("for _ in range(n):")
            self.depth += 1
            if f.kind in SCALARS:
                self.text(f, items + ".append({})", element=True)
            else:
                variable = self.struct(f.kind)
                self.flush()
                self.line(f"{items}.append({variable})")
            self.depth -= 1

    def single(self, f: Field, target: str, tagged: bool) -> None:
        nullable = self.version in f.nullable
        if nullable:
            # Kafka marks a null struct by a negative byte, but by a zero varint inside a tagged field.
            self.run.append(("B" if tagged else "b", "n"))
            self.flush()
            self.line("if n == 0:" if tagged else "if n < 0:")
            self.line(f"    {target} = None")
            self.line("else:")
            self.depth += 1
        variable = self.struct(f.kind)
        self.line(f"{target} = {variable}")
        if nullable:
            self.flush()
            self.depth -= 1

    def tags(self, name: str, variable: str) -> None:
        self.run.append(("B", "t"))
        self.flush()
        self.line("if t:")
        self.depth += 1
        known = self.tags_of(name)
        if known:
            self.line("if t > 127:")
            self.line("    t, pos = long_varint(buf, pos, t)")
            self.line("for _ in range(t):")
            self.depth += 1
            self.known_tags(known, variable)
            self.depth -= 1
        else:
            self.line("pos = skip_tags(buf, pos, t, size)")
        self.depth -= 1

    def known_tags(self, known: list[Field], variable: str) -> None:
        end = self.fresh("end")
        self.line(f"tag, pos, {end} = tag_head(buf, pos, size)")
        for index, f in enumerate(known):
            self.line(f"{'elif' if index else 'if'} tag == {f.tag}:")
            self.depth += 1
            self.field(f, f"{variable}.{f.name}", tagged=True)
            self.flush()
            self.line(f"if pos != {end}:")
            self.line(f'    raise bad_tag("{f.label}", pos, {end})')
            self.depth -= 1
        self.line("else:")
        self.line(f"    pos = {end}")


class EncoderCode(Code):
    def __init__(self, schema: Schema, version: int, formats: set[str]) -> None:
        super().__init__(schema, version, formats)
        self.append = "append"

    def build(self) -> list[str]:
        self.line("append = out.append")
        self.struct(self.schema.name, "o")
        self.flush()
        return self.lines

    def flush(self) -> None:
        if not self.run:
            return
        letters = [letter for letter, _ in self.run]
        values = [value for letter, value in self.run if letter != "x"]
        if values == ["-1"] and len(letters) == 1:
            self.constant(b"\xff" * struct.calcsize(letters[0]))
        elif values:
            self.line(f"{self.append}({self.struct_name(letters, '_w')}({', '.join(values)}))")
        else:
            self.constant(bytes(len(letters)))
        self.run.clear()

    def constant(self, value: bytes) -> None:
        text = "".join(f"\\x{byte:02x}" for byte in value)
        self.line(f'{self.append}(b"{text}")')

    def compact_length(self, longer: str) -> None:
        """Writes n as a varint; if that is one byte, it travels in the struct call of the pending run."""
        letters = [letter for letter, _ in self.run]
        values = "".join(value + ", " for letter, value in self.run if letter != "x")
        if not letters:
            self.line(f"{self.append}(ONE[n] if n < 128 else {longer}(n))")
            return
        short = f"{self.struct_name([*letters, 'B'], '_w')}({values}n)"
        head = f"{self.struct_name(letters, '_w')}({values.removesuffix(', ')})"
        self.line(f"{self.append}({short} if n < 128 else {head} + {longer}(n))")
        self.run.clear()

    def struct(self, name: str, variable: str) -> None:
        for f in self.schema.structs[name].fields:
            if self.version not in f.versions and not f.ignorable:
                self.line(f"if {is_set(f, f'{variable}.{f.name}')}:")
                self.line(f'    raise not_in_version("{f.label}")')
        for f in self.schema.structs[name].fields:
            if self.present(f):
                self.field(f, f"{variable}.{f.name}")
        if self.flexible:
            self.tags(self.tags_of(name), variable)

    def field(self, f: Field, value: str, tagged: bool = False) -> None:
        if f.is_fixed:
            if f.kind == "uuid":
                self.line(f"if len({value}) != 16:")
                self.line(f'    raise bad_uuid("{f.label}")')
            self.run.append((FORMATS[f.kind], value))
        elif f.is_array:
            self.array(f, value)
        elif f.is_struct:
            self.single(f, value, tagged)
        else:
            self.text(f, value)

    def null_or(self, value: str, letter: str) -> None:
        """Opens the branch for a value that is there; the caller closes it.

        Null is -1 in the width of the letter, or a zero byte if that is x. Both branches take the pending run along.
        """
        pending = list(self.run)
        self.line(f"if {value} is None:")
        self.depth += 1
        self.run.append((letter, "-1"))
        self.flush()
        self.depth -= 1
        self.line("else:")
        self.depth += 1
        self.run = pending

    def text(self, f: Field, value: str, element: bool = False) -> None:
        compact = self.is_compact(f)
        nullable = self.version in f.nullable and not element
        held = self.fresh("v")
        self.line(f"{held} = {value}")
        if nullable:
            self.null_or(held, "x" if compact else "h" if f.kind == "string" else "i")
        if f.kind == "string":
            self.line(f"{held} = {held}.encode()")
        self.line(f"n = len({held}) + 1" if compact else f"n = len({held})")
        if compact:
            self.compact_length("string_head" if f.kind == "string" else "varint")
        else:
            self.run.append(("h" if f.kind == "string" else "i", "n"))
            self.flush()
        if f.kind == "records":
            self.line("if n > 1:" if compact else "if n:")
            self.line(f"    {self.append}({held})")
        else:
            self.line(f"{self.append}({held})")
        if nullable:
            self.depth -= 1

    def array(self, f: Field, value: str) -> None:
        compact = self.is_compact(f)
        nullable = self.version in f.nullable
        held = self.fresh("v")
        self.line(f"{held} = {value}")
        if nullable:
            self.null_or(held, "x" if compact else "i")
        if compact:
            self.line(f"n = len({held}) + 1")
            self.compact_length("varint")
        else:
            self.run.append(("i", f"len({held})"))
            self.flush()
        self.elements(f, held)
        if nullable:
            self.depth -= 1

    def elements(self, f: Field, held: str) -> None:
        if f.kind in FORMATS and f.kind != "uuid":
            self.line(f"if {held}:")
            self.line(f'    {self.append}(pack(f">{{len({held})}}{FORMATS[f.kind]}", *{held}))')
            return
        item = self.fresh("e")
        self.line(f"for {item} in {held}:")
        self.depth += 1
        if f.kind == "uuid":
            self.line(f"if len({item}) != 16:")
            self.line(f'    raise bad_uuid("{f.label}")')
            self.line(f"{self.append}({item})")
        elif f.kind in SCALARS:
            self.text(f, item, element=True)
        else:
            self.struct(f.kind, item)
            self.flush()
        self.depth -= 1

    def single(self, f: Field, value: str, tagged: bool) -> None:
        nullable = self.version in f.nullable
        held = self.fresh("v")
        self.line(f"{held} = {value}")
        if nullable:
            self.null_or(held, "x" if tagged else "b")
            self.run.append(("b", "1"))
        self.struct(f.kind, held)
        if nullable:
            self.flush()
            self.depth -= 1

    def tags(self, known: list[Field], variable: str) -> None:
        if not known:
            self.run.append(("x", ""))
            return
        self.flush()
        # Most often nothing is set, and a default struct is one shared object: identity answers first.
        self.line(f"if {' or '.join(may_be_set(f, f'{variable}.{f.name}') for f in known)}:")
        self.depth += 1
        flags = []
        for f in known:
            flag, held = self.fresh("g"), self.fresh("v")
            self.line(f"{held} = {variable}.{f.name}")
            self.line(f"{flag} = bool({is_set(f, held)})" if f.kind == "bool" else f"{flag} = {is_set(f, held)}")
            flags.append((f, flag, held))
        self.line(f"{self.append}(ONE[{' + '.join(flag for _, flag, _ in flags)}])")
        for f, flag, held in flags:
            self.line(f"if {flag}:")
            self.depth += 1
            self.tagged(f, held)
            self.depth -= 1
        self.depth -= 1
        self.line("else:")
        self.depth += 1
        self.constant(b"\0")
        self.depth -= 1

    def tagged(self, f: Field, held: str) -> None:
        """Tag, size, value: the value is written aside first because its size stands in front."""
        outer, aside = self.append, self.fresh("p")
        self.line(f"{aside} = []")
        self.append = f"{aside}.append"
        self.field(f, held, tagged=True)
        self.flush()
        self.append = outer
        self.line(f'{aside} = b"".join({aside})')
        self.line(f'{self.append}(b"\\x{f.tag:02x}" + varint(len({aside})) + {aside})')


# ------------------------------------------------------------------------------------------------------ the modules

HEADER = """\
# Generated by tools/generate_protocol.py from Apache Kafka's message schemas. Do not edit.
# mypy: allow-untyped-defs, no-check-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""
FROM_CODEC = (
    *(
        "EMPTY",
        "ONE",
        "Message",
        "MetadataRecord",
        "Records",
        "Request",
        "Struct",
        "bad_length",
        "bad_tag",
        "bad_uuid",
        "long_string",
        "long_varint",
    ),
    *("malformed", "not_in_version", "shared_default", "skip_tags", "string_head", "tag_head", "unwritable", "varint"),
)


def class_name(schema: Schema, name: str) -> str:
    return name if name == schema.name else f"_{name}"


def python_type(schema: Schema, f: Field) -> str:
    if f.kind == "records":
        base = "Records"
    elif f.kind in SCALARS:
        base = PYTHON_TYPES.get(f.kind, "int")
    else:
        base = class_name(schema, f.kind)
    if f.is_array:
        base = f"list[{base}]"
    if f.nullable.high >= 0 or default_code(f) == "None":
        base += " | None"
    return base


def base_class(schema: Schema) -> str:
    """A request says what answers it, so that who asks need not; a record of the metadata log is told from others."""
    if schema.type == "request":
        return f'Request["{schema.response}"]'
    return "MetadataRecord" if schema.type == "metadata" and schema.origin == "kafka-metadata" else "Message"


def class_lines(schema: Schema, spec: StructSchema) -> Iterator[str]:
    top = spec.name == schema.name
    yield f"class {class_name(schema, spec.name)}({base_class(schema) if top else 'Struct'}):"
    if not top:
        yield f'    __qualname__ = "{schema.name}.{spec.name}"'
    names = ", ".join(f'"{f.name}"' for f in spec.fields)
    yield f"    __slots__ = FIELDS = ({names}{',' if len(spec.fields) == 1 else ''})"
    if top:
        for name in schema.structs:
            if name != schema.name:
                yield f"    {name}: TypeAlias = _{name}"
        if schema.key >= 0:
            yield f"    API_KEY = {schema.key}"
        if schema.first_flexible <= FOREVER:
            yield f"    FIRST_FLEXIBLE = {schema.first_flexible}"
    if not spec.fields:
        return
    yield ""
    yield "    def __init__("
    yield "        self,"
    for f in spec.fields:
        default = default_code(f)
        yield f"        {f.name}: {python_type(schema, f)} = {'EMPTY' if default == '[]' else default},"
    yield "    ) -> None:"
    for f in spec.fields:
        kind = python_type(schema, f)
        if default_code(f) == "[]":
            yield f"        self.{f.name}: {kind} = [] if {f.name} is EMPTY else {f.name}"
        else:
            yield f"        self.{f.name} = {f.name}"


def functions(schema: Schema, kind: type[DecoderCode] | type[EncoderCode], formats: set[str]) -> Iterator[str]:
    """One function per distinct layout, then the table of versions."""
    decodes = kind is DecoderCode
    seen: dict[str, str] = {}
    table = []
    for version in schema.numbers:
        body = "\n".join(kind(schema, version, formats).build())
        if body not in seen:
            seen[body] = f"_{'decode' if decodes else 'encode'}_{version}"
            yield ""
            yield ""
            yield f"def {seen[body]}({'buf, pos' if decodes else 'o, out'}):"
            yield "    try:"
            yield body
            if decodes:
                yield "    except (error, IndexError, UnicodeDecodeError) as cause:"
                yield f'        raise malformed("{schema.name}", cause) from cause'
            else:
                yield "    except (error, TypeError, AttributeError, UnicodeEncodeError) as cause:"
                yield f'        raise unwritable("{schema.name}", cause) from cause'
        table.append(f"{version}: {seen[body]}")
    yield ""
    yield ""
    yield f"{schema.name}.{'DECODERS' if decodes else 'ENCODERS'} = {{{', '.join(table)}}}"


def struct_lines(formats: set[str]) -> Iterator[str]:
    for text in sorted(formats):
        prefix, *letters = text.split(" ")
        name = prefix + "_" + "".join({"?": "t", "16s": "U"}.get(letter, letter) for letter in letters)
        yield f'{name} = Layout(">{"".join(letters)}").{"unpack_from" if prefix == "_r" else "pack"}'


def module_text(schema: Schema) -> str:
    formats: set[str] = set()
    classes: list[str] = []
    defaults = {f.kind for s in schema.structs.values() for f in s.fields if f.is_struct and f.default != "null"}
    for spec in schema.structs.values():
        classes += ["", "", *class_lines(schema, spec)]
        if spec.name in defaults:
            classes += ["", "", f"_DEFAULT_{snake(spec.name).upper()} = shared_default(_{spec.name})"]
    code = [*functions(schema, DecoderCode, formats), *functions(schema, EncoderCode, formats)]
    layouts = list(struct_lines(formats))
    used = set(re.findall(r"(?<!\.)\b\w+", "\n".join(classes + code)))
    structs = [name for name in ("error", "pack", "unpack_from") if name in used]
    head = ["from __future__ import annotations", ""]
    head.append(f"from struct import {', '.join([*(['Struct as Layout'] if layouts else []), *structs])}")
    is_request = schema.type == "request"
    names = [*(["TYPE_CHECKING"] if is_request else []), *(["TypeAlias"] if "TypeAlias" in used else [])]
    if names:
        head.append(f"from typing import {', '.join(names)}")
    head += ["", f"from ottla.protocol.codec import {', '.join(n for n in FROM_CODEC if n in used)}"]
    head.append("")
    if is_request:
        response = schema.response
        head += ["if TYPE_CHECKING:", f"    from ottla.protocol._generated.{snake(response)} import {response}", ""]
    if "new" in used:
        head.append("new = object.__new__")
    if "ZERO_UUID" in used:
        head.append("ZERO_UUID = bytes(16)")
    return HEADER + "\n".join([*head, *layouts, *classes, *code]) + "\n"


# ------------------------------------------------------------------------------------------------- the table modules


def tables_text(schemas: list[Schema]) -> str:
    """What messages.py knows without importing a message."""
    modules = [f'    "{s.name}": "{s.module}",' for s in schemas]
    sections = {
        "APIS: tuple[tuple[int, str, int, int, int | None, tuple[str, ...], bool], ...]": (
            "()",
            list(api_rows(schemas)),
        ),
        "MODULES": ("{}", modules),
        "METADATA": ("{}", record_rows(schemas, "kafka-metadata")),
        "REMOTE_LOG": ("{}", record_rows(schemas, "kafka-storage")),
        "GROUP": ("{}", pair_rows(schemas, "kafka-group-coordinator")),
        "TRANSACTION": ("{}", pair_rows(schemas, "kafka-transaction-coordinator")),
        "SHARE": ("{}", pair_rows(schemas, "kafka-share-coordinator")),
    }
    parts = [
        f"{name} = {ends[0]}\n" + "".join(row + "\n" for row in rows) + f"{ends[1]}\n"
        for name, (ends, rows) in sections.items()
    ]
    return HEADER + "\n" + "\n".join(parts)


def api_rows(schemas: list[Schema]) -> Iterator[str]:
    for s in sorted((s for s in schemas if s.type == "request"), key=lambda s: s.key):
        name = s.name.removesuffix("Request")
        flexible = s.first_flexible if s.first_flexible <= FOREVER else None
        row = (s.key, name, s.versions.low, s.versions.high, flexible, s.listeners, s.latest_unstable)
        yield f"    {row!r},".replace("'", '"')


def record_rows(schemas: list[Schema], origin: str) -> list[str]:
    rows = sorted((s.key, s.name) for s in schemas if s.type == "metadata" and s.origin == origin)
    return [f'    {key}: "{name}",' for key, name in rows]


def pair_rows(schemas: list[Schema], origin: str) -> list[str]:
    """Type to key class and value class of one coordinator: their types overlap, so each has a table of its own."""
    mine = [s for s in schemas if s.origin == origin]
    keys = {s.key: s.name for s in mine if s.type == "coordinator-key"}
    values = {s.key: s.name for s in mine if s.type == "coordinator-value"}
    return [f'    {key}: ("{keys[key]}", "{values[key]}"),' for key in sorted(keys)]


def every_text(schemas: list[Schema]) -> str:
    """All classes by name, for type checkers: at run time messages.py imports them one by one."""
    return (
        HEADER
        + "\n"
        + "".join(f"from ottla.protocol._generated.{s.module} import {s.name} as {s.name}\n" for s in schemas)
    )


# ----------------------------------------------------------------------------------------------------- the command


def find_jars(paths: list[Path]) -> list[Path]:
    jars = []
    for path in paths:
        jars += [path / f"{name}-{KAFKA}.jar" for name in ARTIFACTS] if path.is_dir() else [path]
    return jars


def read_schemas(jar: Path) -> Iterator[Schema]:
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if re.match(r"(common/)?(message|metadata)/\w+\.json$", name):
                schema = parse_schema(archive.read(name).decode(), re.sub(r"-\d.*", "", jar.name))
                if schema is not None:
                    yield schema


def gather(jars: list[Path], newer: Path | None) -> list[Schema]:
    found = {schema.name: schema for jar in jars for schema in read_schemas(jar)}
    if newer is not None:
        found.update({s.name: s for s in read_schemas(newer) if s.name in FROM_NEWER})
    return [found[name] for name in sorted(found)]


def outputs(schemas: list[Schema]) -> dict[Path, str]:
    files = {TARGET / f"{s.module}.py": module_text(s) for s in schemas}
    files[TARGET / "__init__.py"] = '"""Generated; entered through ottla.protocol.messages only."""\n'
    files[TARGET / "tables.py"] = tables_text(schemas)
    files[TARGET / "every.py"] = every_text(schemas)
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", nargs="+", type=Path, help="jars, or a folder that holds those of Kafka " + KAFKA)
    parser.add_argument("--newer", type=Path, help="a later kafka-clients jar, for ApiVersions alone")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the tree is out of date")
    options = parser.parse_args()
    files = outputs(gather(find_jars(options.jars), options.newer))
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    extra = [path for path in TARGET.glob("*.py") if path not in files]
    if options.check:
        for path in [*stale, *extra]:
            print(f"out of date: {path.relative_to(ROOT)}", file=sys.stderr)
        return 1 if stale or extra else 0
    for path in extra:
        path.unlink()
    for path in stale:
        path.write_text(files[path])
    print(f"{len(files)} files, {len(stale)} changed, {len(extra)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
