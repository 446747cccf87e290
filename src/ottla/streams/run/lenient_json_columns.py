"""JSON as ksqlDB reads it (`serdes.lenient_json`), as Spark columns: for keys inside windows. What a source reads
otherwise is parsed before Spark has it (`parsed_records`).

Most documents are just what the schema says: Spark's own parser reads them, fast. Where it could see them otherwise (a
field in other letters, a number in quotes, a fraction for an integer, a null that may be one of these) the document is
taken apart as a VARIANT instead, value by value, with ksqlDB's conversions. `_plain` and `_doubtful` are the first way,
`_Taken` the second; tests hold both together with the Python body.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from ottla.serdes import values as v
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.types import ANY, LONG, STRING, Type
from ottla.streams.run.type_columns import date_of, null_of, read_text, spark_type, time_of, timestamp_of

_BROKEN: Final = "__broken"
_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _BROKEN,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_MOMENTS: Final[dict[str, Callable[[Column], Column]]] = {"date": date_of, "time": time_of, "timestamp": timestamp_of}
_LOOKS_OTHERWISE: Final = r"^(?:\[|-?[0-9]+[.eE])"
"""Texts that may have been no text: arrays, fractions."""

_NO_TEXT_BUT_BASE64: Final = r"^(?:[0-9]+|true)\z"
"""Numbers and booleans that would pass for base64, had they been texts."""
_BASE64: Final = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\z"


def decoded_lenient(serde: LenientJsonSerde, column: Column, complaint: Column) -> Column:
    """A struct of value and error."""

    def of_text(text: Column) -> Column:
        return bound(parsed(serde, text), lambda found: outcome(serde, column, text, found, complaint))

    return bound(text_of(column), of_text)


def text_of(column: Column) -> Column:
    """Null where the bytes are no text."""
    return F.try_validate_utf8(column.cast("string"))


def parsed(serde: LenientJsonSerde, text: Column) -> Column:
    """By Spark's own parser."""
    shape = f"v {spark_type(_as_parsed(serde.content))}, {_BROKEN} string"
    return F.from_json(_document(text), shape, _OPTIONS)


def outcome(serde: LenientJsonSerde, column: Column, text: Column, found: Column, complaint: Column) -> Column:
    """Of bytes, their text, and what the parser made of it: a struct of value and error."""
    content, no_error = serde.content, F.lit(None).cast("string")
    bad = found[_BROKEN].isNotNull() | F.coalesce(_doubtful(found["v"], content, text), F.lit(False))
    good = _outcome(serde, _plain(found["v"], content), no_error)
    nothing = F.struct(null_of(serde.type).alias("value"), no_error.alias("error"))
    return (
        F.when(column.isNull(), nothing)
        .when(text.isNull(), _outcome(serde, null_of(content), complaint))
        .when(~bad, good)
        .otherwise(_taken_apart(serde, _document(text), complaint))
    )


def _document(text: Column) -> Column:
    return F.concat(F.lit('{"v":'), text, F.lit("}"))


def bound(column: Column, function: Callable[[Column], Column]) -> Column:
    """The function of a column that is computed once, and stands once in the plan, however often it is mentioned."""
    return F.get(F.transform(F.array(column), function), 0)


def _outcome(serde: LenientJsonSerde, content: Column, error: Column) -> Column:
    value = content if serde.single is None else F.struct(content.alias(serde.single))
    return F.struct(value.alias("value"), error.alias("error"))


# ---- documents that are what the schema says


def _spellings(kind: Type) -> list[tuple[str, str | None]]:
    """Of each field: its name, and the same in small letters, unless that is another field's."""
    names = {name for name, _ in kind.fields}
    return [(name, _small(name, names)) for name, _ in kind.fields]


def _small(name: str, names: Collection[str]) -> str | None:
    small = name.lower()
    return small if name == name.upper() and small not in names else None


def _as_parsed(kind: Type) -> Type:
    if kind.name == "decimal":
        return ANY
    if kind.name in _MOMENTS:
        return LONG
    if kind.name == "binary":
        return STRING
    if kind.name == "struct":
        fields: list[tuple[str, Type]] = []
        for (name, small), (_, part) in zip(_spellings(kind), kind.fields, strict=True):
            fields += [(each, _as_parsed(part)) for each in (name, small) if each is not None]
        return Type("struct", fields=tuple(fields))
    return replace(kind, element=None if kind.element is None else _as_parsed(kind.element))


def _field(column: Column, name: str, small: str | None) -> Column:
    return column[name] if small is None else F.coalesce(column[name], column[small])


def _plain(column: Column, kind: Type) -> Column:
    """The value, where nothing is doubtful."""
    element = kind.element
    match kind.name:
        case "struct":
            parts = zip(_spellings(kind), kind.fields, strict=True)
            fields = [_plain(_field(column, *spelt), part).alias(name) for spelt, (name, part) in parts]
            return F.when(column.isNotNull(), F.struct(*fields))
        case "array" if element is not None:
            return column if _as_parsed(element) == element else F.transform(column, lambda each: _plain(each, element))
        case "map" if element is not None:
            same = _as_parsed(element) == element
            return column if same else F.transform_values(column, lambda _, each: _plain(each, element))
        case "decimal":
            return read_text(F.try_variant_get(column, "$", "string"), kind)
        case "binary":
            return _bytes_of(column)
    moment = _MOMENTS.get(kind.name)
    return column if moment is None else moment(column)


def _doubtful(column: Column, kind: Type, text: Column) -> Column:
    """Whether the parser may have seen something else than there is. May be null for false."""
    element = kind.element
    match kind.name:
        case "struct":
            return reduce(
                or_, [_doubtful_field(column, *each, text) for each in zip(_spellings(kind), kind.fields, strict=True)]
            )
        case "array" if element is not None:
            return F.exists(column, lambda each: F.coalesce(_doubtful(each, element, text), F.lit(False)))
        case "map" if element is not None:
            keys = F.map_keys(column)
            twice = F.size(F.array_distinct(keys)) < F.size(keys)
            inside = F.exists(
                F.map_values(column), lambda each: F.coalesce(_doubtful(each, element, text), F.lit(False))
            )
            return F.coalesce(twice, F.lit(False)) | F.coalesce(inside, F.lit(False))
        case "string":
            first = F.ascii(column)
            return ((first == ord("[")) | first.between(ord("-"), ord("9"))) & column.rlike(_LOOKS_OTHERWISE)
        case "binary":
            return column.isNotNull() & (_plain(column, kind).isNull() | column.rlike(_NO_TEXT_BUT_BASE64))
        case "decimal" | "date" | "time" | "timestamp":
            return column.isNotNull() & _plain(column, kind).isNull()
    return F.lit(False)


def _doubtful_field(column: Column, spelt: tuple[str, str | None], declared: tuple[str, Type], text: Column) -> Column:
    """A null may be a field in other letters, or one that is spelt in two ways: then its name stands in the text."""
    name, small = spelt
    found = _field(column, name, small)
    exact_too = F.lit(False) if small is None else column[name].isNull() & text.contains(f'"{name}"')
    elsewhere = F.lit(False)
    if name == name.upper():
        elsewhere = found.isNull() & (F.lower(text).contains(f'"{name.lower()}"') | text.contains("\\u"))
    doubt = F.coalesce(_doubtful(found, declared[1], text), F.lit(False))
    return column.isNotNull() & (exact_too | elsewhere | doubt)


# ---- documents that are taken apart


def _taken_apart(serde: LenientJsonSerde, document: Column, complaint: Column) -> Column:
    def both(found: Column) -> Column:
        def outcome(taken: Column) -> Column:
            bad = found.isNull() | taken["wrong"]
            return F.when(bad, _outcome(serde, null_of(serde.content), complaint)).otherwise(
                _outcome(serde, taken["value"], F.lit(None).cast("string"))
            )

        return bound(_taken(found, serde.content), outcome)

    return bound(F.try_variant_get(F.try_parse_json(document), "$.v", "variant"), both)


def _taken(found: Column, kind: Type) -> Column:
    """A struct of the value, and of whether it is wrong: none of the type. `found` is a variant that is bound; null
    stands for a field that is missing."""
    element = kind.element
    match kind.name:
        case "struct":
            return bound(_members(found), lambda members: _taken_struct(found, members, kind))
        case "array" if element is not None:
            items = F.try_variant_get(found, "$", "array<variant>")
            taken = F.transform(items, lambda each: _taken(each, element))
            return bound(taken, lambda all_: _together(F.transform(all_, lambda each: each["value"]), all_, found))
        case "map" if element is not None:
            taken = F.transform_values(_members(found), lambda _, each: _taken(each, element))
            return bound(
                taken,
                lambda all_: _together(
                    F.transform_values(all_, lambda _, each: each["value"]), F.map_values(all_), found
                ),
            )
    return bound(_scalar(found, kind), lambda value: _both(value, _is_there(found) & value.isNull()))


def _both(value: Column, wrong: Column) -> Column:
    return F.struct(value.alias("value"), F.coalesce(wrong, F.lit(False)).alias("wrong"))


def _together(value: Column, parts: Column, found: Column) -> Column:
    wrong = F.coalesce(F.exists(parts, lambda each: each["wrong"]), F.lit(False))
    return _both(value, (_is_there(found) & parts.isNull()) | wrong)


def _members(found: Column) -> Column:
    return F.try_variant_get(found, "$", "map<string, variant>")


def _is_there(found: Column) -> Column:
    return found.isNotNull() & ~F.coalesce(F.is_variant_null(found), F.lit(False))


def _taken_struct(found: Column, members: Column, kind: Type) -> Column:
    parts = [bound(_member(members, name), _taking(part)).alias(name) for name, part in kind.fields]

    def whole(taken: Column) -> Column:
        fields = [taken[name]["value"].alias(name) for name, _ in kind.fields]
        wrong = reduce(or_, [taken[name]["wrong"] for name, _ in kind.fields])
        missing = _is_there(found) & members.isNull()
        return _both(F.when(members.isNotNull(), F.struct(*fields)), missing | wrong)

    return bound(F.struct(*parts), whole)


def _taking(kind: Type) -> Callable[[Column], Column]:
    return lambda found: _taken(found, kind)


def _member(members: Column, name: str) -> Column:
    """By its name, else by one that is it in capital letters."""
    if name != name.upper():
        return F.try_element_at(members, F.lit(name))
    alike = F.filter(F.map_entries(members), lambda each: F.upper(each["key"]) == name)
    other = F.try_element_at(alike, F.lit(-1))["value"]
    return F.when(F.map_contains_key(members, name), F.try_element_at(members, F.lit(name))).otherwise(other)


def _scalar(found: Column, kind: Type) -> Column:
    """Null where it is none of the type."""
    seen = F.struct(F.schema_of_variant(found).alias("form"), F.try_variant_get(found, "$", "string").alias("text"))
    return bound(seen, lambda each: _converted(found, each["form"], each["text"], kind))


def _converted(found: Column, form: Column, text: Column, kind: Type) -> Column:
    is_text, is_number = form == "STRING", form.rlike("^(?:BIGINT|DECIMAL|DOUBLE)")
    match kind.name:
        case "boolean":
            return F.when(form == "BOOLEAN", F.try_variant_get(found, "$", "boolean"))
        case "string":
            return _as_text(found, form, text)
        case "int" | "long":
            return _integer(found, form, text, kind)
        case "double":
            number = F.when(is_number, F.try_variant_get(found, "$", "double"))
            return F.when(is_text, _double_of(text)).otherwise(number)
        case "decimal":
            return F.when(is_text | is_number, read_text(text, kind))
        case "binary":
            return F.when(is_text, _bytes_of(text))
    return bound(_integer(found, form, text, LONG), _MOMENTS[kind.name])


def _integer(found: Column, form: Column, text: Column, kind: Type) -> Column:
    """A number by Java's narrowing: whole ones wrap, of fractions the whole part counts. A text has to fit."""
    ddl, low, high = ("int", v.INT_MIN, v.INT_MAX) if kind.name == "int" else ("bigint", v.LONG_MIN, v.LONG_MAX)
    whole = F.try_variant_get(found, "$", "decimal(38,0)")
    size = F.lit(str((high + 1) * 2)).cast("decimal(20,0)")
    rest = F.pmod(whole, size)
    wrapped = F.when(rest > F.lit(str(high)).cast("decimal(20,0)"), rest - size).otherwise(rest)
    fraction = F.try_variant_get(found, "$", "double")
    cut = (
        F.when(fraction >= float(high), F.lit(high))
        .when(fraction <= float(low), F.lit(low))
        .otherwise(F.regexp_extract(text, r"^-?[0-9]+", 0).try_cast("bigint"))
    )
    exponent = F.when(fraction.between(float(low), float(high)), fraction.try_cast("bigint")).otherwise(cut)
    return (
        F.when(form == "STRING", F.when(text.rlike(r"^[+-]?[0-9]+\z"), text).try_cast(ddl))
        .when(form.rlike(r"^(?:BIGINT|DECIMAL\([0-9]+,0\))"), wrapped.try_cast(ddl))
        .when(form.startswith("DECIMAL"), cut.try_cast(ddl))
        .when(form == "DOUBLE", exponent.try_cast(ddl))
    )


def _double_of(text: Column) -> Column:
    return F.when(
        text.rlike(r"^[\x00-\x20]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[\x00-\x20]*\z"), text
    ).try_cast("double")


def _bytes_of(text: Column) -> Column:
    return F.when(text.rlike(_BASE64), F.try_to_binary(text, F.lit("base64")))


def _as_text(found: Column, form: Column, text: Column) -> Column:
    """A text is itself, an object its JSON, an array as Java writes a list."""
    items = F.try_variant_get(found, "$", "array<variant>")

    def item(each: Column) -> Column:
        bare = F.try_variant_get(each, "$", "string")
        return F.coalesce(
            F.when(F.schema_of_variant(each).startswith("OBJECT"), F.to_json(each)).otherwise(bare), F.lit("null")
        )

    listed = F.concat(F.lit("["), F.array_join(F.transform(items, item), ", "), F.lit("]"))
    return F.when(form.startswith("ARRAY"), listed).when(form.startswith("OBJECT"), F.to_json(found)).otherwise(text)
