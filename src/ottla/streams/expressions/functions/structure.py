"""Values made of others: fields, items, structs, arrays, and Spark's own functions."""

from collections.abc import Sequence
from typing import Any, Final, NoReturn

from ottla.serdes import values as v
from ottla.serdes.types import ANY, LONG, STRING, Type, array_of
from ottla.streams.errors import NeedsSparkError
from ottla.streams.expressions.bound import Bound, Evaluator, Refused, Spark
from ottla.streams.expressions.functions.declare import anything, family, one, unified

declare: Final = family("structure")
_LONGEST_ARRAY: Final = (1 << 31) - 1


def _field(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    (base,), (field,) = args, options
    if base.type == ANY:
        return Bound("json_field", ANY, (base,), options)
    if base.type.name == "map" and base.type.element is not None:
        return Bound("entry", base.type.element, (base,), options)
    if base.type.name == "windowed":
        fields = {"key": base.type.element, "start": LONG, "end": LONG}
    elif base.type.name == "struct":
        fields = dict(base.type.fields)
    else:
        raise Refused(f"{base.type} has no fields; read the topic with a JSON serde")
    kind = fields.get(field)
    if kind is None:
        from difflib import get_close_matches  # noqa: PLC0415  for the error alone

        near = get_close_matches(field, fields, 1)
        suggestion = f"do you mean {near[0]!r}? " if near else ""
        raise Refused(f"there is no field {field!r}; {suggestion}there are {', '.join(fields)}")
    return Bound("window_field" if base.type.name == "windowed" else name, kind, (base,), options)


def _item(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    (base,) = args
    if base.type == ANY:
        return Bound("json_item", ANY, (base,), options)
    if base.type.name != "array" or base.type.element is None:
        raise Refused(f"{base.type} is no array")
    return Bound(name, base.type.element, (base,), options)


def _unbound(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> NoReturn:
    raise AssertionError(f"{name} is what another function becomes by its types")


def _window_part(node: Bound, args: list[Evaluator]) -> Evaluator:
    field = node.options[0]
    return one(lambda key: key.key if field == "key" else getattr(key.window, field), args[0])


declare(
    "field",
    "struct, name",
    _field,
    build=lambda node, args: one(lambda given: given.get(node.options[0]), args[0]),
    typed_column=lambda spark, node, args: args[0].getField(node.options[0]),
    about='A field of a struct or of a JSON object, also `struct["name"]`.',
)
declare(
    "window_field",
    "key, name",
    _unbound,
    build=_window_part,
    typed_column=lambda spark, node, args: args[0].getField(node.options[0]),
    about="`key`, `start` or `end` of the key of a window.",
)
declare(
    "entry",
    "map, key",
    _unbound,
    build=lambda node, args: one(lambda given: given.get(node.options[0]), args[0]),
    typed_column=lambda spark, node, args: spark.F.try_element_at(args[0], spark.F.lit(node.options[0])),
    about='The value of a key, also `map["key"]`; null if there is none.',
)
declare(
    "item",
    "array, index",
    _item,
    build=lambda node, args: one(lambda given: v.json_item(given, node.options[0]), args[0]),
    typed_column=lambda spark, node, args: spark.F.get(args[0], node.options[0]),
    about="An item of an array, the first is 0, also `array[0]`; null if there is none.",
)


# ---- JSON without a schema


def json_path(part: str | int) -> str:
    """One step of the path into a VARIANT."""
    if isinstance(part, int):
        # A path has no negative places; no array is that long.
        return f"[{part if part >= 0 else _LONGEST_ARRAY}]"
    if '"' in part and "'" in part:
        raise ValueError(f"a field name with both kinds of quotes cannot be looked up on Spark: {part!r}")
    return f"['{part}']" if '"' in part else f'["{part}"]'


def _step(spark: Spark, node: Bound, args: list[Any]) -> Any:
    return spark.F.try_variant_get(args[0], "$" + json_path(node.options[0]), "variant")


declare(
    "json_field",
    "document, name",
    _unbound,
    build=lambda node, args: one(lambda given: v.json_field(given, node.options[0]), args[0]),
    typed_column=_step,
    about="`field` of JSON without a schema.",
)
declare(
    "json_item",
    "document, index",
    _unbound,
    build=lambda node, args: one(lambda given: v.json_item(given, node.options[0]), args[0]),
    typed_column=_step,
    about="`item` of JSON without a schema.",
)


# ---- made of parts


def _struct(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    nodes = tuple(map(anything, args))
    fields = tuple((field, node.type) for field, node in zip(options, nodes, strict=True))
    return Bound(name, Type("struct", fields=fields), nodes, options)


def _build_struct(node: Bound, args: list[Evaluator]) -> Evaluator:
    fields = list(zip(node.options, args, strict=True))
    return lambda inputs: {name: argument(inputs) for name, argument in fields}


def _struct_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    return spark.F.struct(*[column.alias(name) for name, column in zip(node.options, args, strict=True)])


def _array(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    nodes = tuple(map(anything, unified(args)))
    return Bound(name, array_of(nodes[0].type if nodes else STRING), nodes, options)


def _array_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    made = spark.F.array(*args)
    return made if args else made.cast(spark.ddl(node.type))


def _no_spark(node: Bound, _: list[Evaluator]) -> Evaluator:
    raise NeedsSparkError(node.options[0])


declare(
    "struct",
    "*fields",
    _struct,
    build=_build_struct,
    typed_column=_struct_column,
    nulls="a field that is null",
    about="`struct(name=expression, ...)`: a JSON object.",
)
declare(
    "array",
    "*items",
    _array,
    build=lambda _, args: lambda inputs: [each(inputs) for each in args],
    typed_column=_array_column,
    nulls="an item that is null",
    about="`array(first, second, ...)`, all of one type.",
)
declare(
    "spark",
    "function, *args",
    lambda name, args, options: Bound(name, options[1], tuple(args), options[:1]),
    build=_no_spark,
    typed_column=lambda spark, node, args: node.options[0](*args),
    nulls="as Spark does",
    about="`spark(function, ..., returns=type)`: a function of Spark columns, which runs on Spark alone.",
)
