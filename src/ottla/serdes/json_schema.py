"""Records as JSON that a schema of a registry describes: `Serdes.json_schema`.

The payload is plain JSON, checked against the schema when it is written and when it is read. Its type is taken from the
schema where that says enough: objects with properties are structs, objects of one kind of values maps, integers longs,
numbers doubles, null beside a type is that type. What is left open (several types, no type, a schema that contains
itself) is `any`. Of a struct, members that are null are left out when it is written, unless they are required: JSON
Schema tells a null from nothing, our types do not.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ottla.registry.lookup import Registry
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, InvalidSchema, Resolved, TooComplex
from ottla.registry.schemas.json_schema import JSON_SCHEMA, JsonSchema, validator
from ottla.serdes.arrow import to_column
from ottla.serdes.base import SerdeError
from ottla.serdes.json import JsonSerde
from ottla.serdes.registered import Decode, Encode, RegisteredSerde
from ottla.serdes.schema_ids import SchemaId
from ottla.serdes.types import ANY, BOOLEAN, DOUBLE, LONG, MOST_PARTS, STRING, Type, array_of, map_of, struct_of

Tree: TypeAlias = Any
Prune: TypeAlias = Callable[[Any], Any]

_SCALARS: Final = {"string": STRING, "integer": LONG, "number": DOUBLE, "boolean": BOOLEAN}


class JsonSchemaSerde(RegisteredSerde[JsonSchema]):
    """JSON by a schema, with the schema's id in front of it or its GUID in a header; both are read.

    Serdes.json_schema(registry, schema)             this schema, as text or as what the text would be read as
    Serdes.json_schema(registry, subject="orders")   the latest schema of the subject, asked for now
    Serdes.json_schema(registry)                     reads whatever schema records have; the value has no type

    With `validate=False` records that are read are not checked against the schema they were written with. Other options
    are those of `RegisteredSerde`.
    """

    name = "json_schema"
    language = "JSON"
    faults = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)

    def __init__(
        self,
        registry: Registry,
        schema: "str | bool | Mapping[str, Any] | None" = None,
        *,
        validate: bool = True,
        **options: Any,
    ) -> None:
        self.validate = validate
        text = schema if schema is None or isinstance(schema, str) else json.dumps(schema)
        super().__init__(registry, text, **options)

    def parse(self, text: str, resolved: Sequence[Resolved]) -> JsonSchema:
        return JSON_SCHEMA.parse(text, resolved, Budget(DEFAULT_STEPS), new=False)

    def type_of(self, schema: JsonSchema) -> Type:
        return _shape(schema)[0]

    def record_name(self, schema: JsonSchema) -> str:
        title = schema.tree.get("title") if isinstance(schema.tree, dict) else None
        return title if isinstance(title, str) else "json"

    def decoding(self, writer: JsonSchema, found: SchemaId, *, for_columns: bool) -> Decode:
        check = _checking(writer) if self.validate else None
        decode = JsonSerde(self.type).decode
        convert = to_column(self.type) if for_columns else None

        def read(data: bytes, start: int) -> Any:
            payload = data[start:]
            if check is not None and (fault := check(payload)) is not None:
                raise SerdeError(fault)
            value = decode(payload)
            return value if convert is None else convert(value)

        return read

    def encoding(self, schema: JsonSchema) -> Encode:
        check = _checking(schema)
        typed, plain = JsonSerde(self.type).encode, JsonSerde(ANY).encode
        _, prune = _shape(schema)

        def write(value: Any) -> bytes:
            payload = typed(value)  # says what is not of the type
            if prune is not None and self.type != ANY:
                payload = plain(prune(value))
            if (fault := check(payload)) is not None:
                raise ValueError(fault)
            return payload

        return write


def _checking(schema: JsonSchema) -> Callable[[bytes], str | None]:
    try:
        return validator(schema)
    except InvalidSchema as error:
        raise SerdeError(str(error)) from error


def _shape(schema: JsonSchema) -> tuple[Type, Prune | None]:
    """The type, and what leaves out nulls that are nothing; None if there are none to leave out."""
    try:
        return _Shapes(schema.tree).shape(schema.tree)
    except (_Recursive, TooComplex):
        return ANY, None


class _Recursive(Exception):
    """A schema was met inside of itself."""


class _Shapes:
    """What types a schema describes."""

    def __init__(self, root: Tree) -> None:
        self._root = root
        self._budget = Budget(MOST_PARTS)
        self._inside: list[int] = []

    def shape(self, tree: Tree) -> tuple[Type, Prune | None]:
        self._budget.spend()
        tree = self._followed(tree)
        if not isinstance(tree, dict):
            return ANY, None
        if id(tree) in self._inside:
            raise _Recursive
        self._inside.append(id(tree))
        found = self._described(tree)
        self._inside.pop()
        return found

    def _described(self, tree: Tree) -> tuple[Type, Prune | None]:
        kind = _kind(tree)
        if kind in _SCALARS:
            return _SCALARS[kind], None
        if kind == "object":
            return self._object(tree)
        if kind == "array" and isinstance(tree.get("items"), dict):
            element, prune = self.shape(tree["items"])
            return array_of(element), None if prune is None else _each(prune)
        for combined in ("anyOf", "oneOf"):
            others = [each for each in tree.get(combined, ()) if each != {"type": "null"}]
            if kind is None and len(others) == 1:
                return self.shape(others[0])
        return ANY, None

    def _object(self, tree: Tree) -> tuple[Type, Prune | None]:
        properties, others = tree.get("properties"), tree.get("additionalProperties")
        if "patternProperties" in tree:
            return ANY, None
        if isinstance(properties, dict) and properties:
            shapes = {name: self.shape(each) for name, each in properties.items()}
            prunes = {name: prune for name, (_, prune) in shapes.items()}
            kind = struct_of({name: kind for name, (kind, _) in shapes.items()})
            return kind, _members(prunes, frozenset(tree.get("required", ())))
        if isinstance(others, dict):
            element, prune = self.shape(others)
            return map_of(element), None if prune is None else _each_value(prune)
        return ANY, None

    def _followed(self, tree: Tree) -> Tree:
        """Where a reference inside the schema leads; others lead to what has no type here."""
        while isinstance(tree, dict) and "$ref" in tree:
            self._budget.spend()
            steps = str(tree["$ref"]).split("/")
            tree = self._root if steps[0] == "#" else None
            for step in steps[1:]:
                name = step.replace("~1", "/").replace("~0", "~")
                tree = tree.get(name) if isinstance(tree, dict) else None
        return tree


def _kind(tree: Tree) -> str | None:
    given = tree.get("type")
    kinds = [given] if isinstance(given, str) else [each for each in given or () if each != "null"]
    if not kinds and "properties" in tree:
        return "object"
    if not kinds and all(isinstance(each, str) for each in tree.get("enum", (None,))):
        return "string"
    return kinds[0] if len(kinds) == 1 else None


def _members(prunes: Mapping[str, Prune | None], required: frozenset[str]) -> Prune:
    def prune(value: Any) -> Any:
        if value is None:
            return None
        result = {}
        for name, each in value.items():
            inner = prunes.get(name)
            if each is not None:
                result[name] = each if inner is None else inner(each)
            elif name in required:
                result[name] = None
        return result

    return prune


def _each(prune: Prune) -> Prune:
    return lambda value: None if value is None else [prune(each) for each in value]


def _each_value(prune: Prune) -> Prune:
    return lambda value: None if value is None else {name: prune(each) for name, each in value.items()}
