"""Texts. Lengths and places are counted in characters; the first one is number 1, as in SQL."""

import operator
import re
from collections.abc import Sequence
from typing import Any, Final
from unicodedata import category

from ottla.serdes import values as v
from ottla.serdes.types import BINARY, BOOLEAN, INT, NULL, STRING, array_of
from ottla.streams.expressions.bound import Bound, Refused, Spark
from ottla.streams.expressions.functions.declare import (
    binary,
    family,
    not_literal,
    one,
    takes,
    text,
    text_or_binary,
    whole,
)
from ottla.streams.expressions.limits import LONGEST, joined, replaced

__all__ = [
    "chr_",
    "concat",
    "concat_ws",
    "contains",
    "endswith",
    "initcap",
    "instr",
    "length",
    "lower",
    "lpad",
    "mask",
    "mask_keep_left",
    "mask_keep_right",
    "mask_left",
    "mask_right",
    "md5",
    "replace",
    "rpad",
    "split_text",
    "startswith",
    "trim",
    "upper",
]
declare: Final = family("strings")
_LONGEST_STRING: Final = (1 << 31) - 1

lower: Final = declare(
    "lower",
    "text",
    takes(text, gives=STRING),
    str.lower,
    column=lambda F, given: F.lower(given),
    about="In small letters.",
)
upper: Final = declare(
    "upper",
    "text",
    takes(text, gives=STRING),
    str.upper,
    column=lambda F, given: F.upper(given),
    about="In capital letters.",
)
initcap: Final = declare(
    "initcap",
    "text",
    takes(text, gives=STRING),
    lambda given: re.sub(r"\S+", lambda word: word[0][:1].upper() + word[0][1:].lower(), given.lstrip()),
    # Spark's own finds words as ICU does, at hyphens and apostrophes too.
    about="Each word begins with a capital letter; words end at white space, which is lost at the beginning.",
)
trim: Final = declare(
    "trim",
    "text",
    takes(text, gives=STRING),
    lambda given: given.strip(" "),
    column=lambda F, given: F.trim(given),
    about="Without the blanks (and only blanks) at both ends.",
)
length: Final = declare(
    "length",
    "text",
    takes(text, gives=INT),
    len,
    column=lambda F, given: F.length(given),
    about="In characters.",
)


def _substr_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    start, wanted = node.options
    return spark.F.substring(args[0], start, _LONGEST_STRING if wanted is None else max(wanted, 0))


declare(
    "substr",
    "text, start, length=None",
    takes(text, gives=STRING),
    build=lambda node, args: one(lambda given: v.substring(given, *node.options), args[0]),
    typed_column=_substr_column,
    about="A part of it; a negative start counts from the end.",
)
contains: Final = declare(
    "contains",
    "text, part",
    takes(text, gives=BOOLEAN),
    operator.contains,
    column=lambda F, given, part: F.contains(given, part),
    about="Whether the part is somewhere in it.",
)
startswith: Final = declare(
    "startswith",
    "text, part",
    takes(text, gives=BOOLEAN),
    str.startswith,
    column=lambda F, given, part: F.startswith(given, part),
    about="Whether it begins so.",
)
endswith: Final = declare(
    "endswith",
    "text, part",
    takes(text, gives=BOOLEAN),
    str.endswith,
    column=lambda F, given, part: F.endswith(given, part),
    about="Whether it ends so.",
)
replace: Final = declare(
    "replace",
    "text, search, replacement",
    takes(text, gives=STRING),
    lambda given, search, replacement: replaced(given, search, replacement) if search else given,
    fails=True,
    column=lambda F, given, search, replacement: F.replace(given, search, replacement),
    about="With all occurrences of a text (no pattern) replaced; an empty one does not occur.",
)


# ---- put together


def concat_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if all(node.type in (BINARY, NULL) for node in args) and any(node.type == BINARY for node in args):
        return takes(binary, gives=BINARY)(name, args, options)
    return takes(text, gives=STRING)(name, args, options)


def _concat(*parts: Any) -> Any:
    return None if sum(map(len, parts)) > LONGEST else parts[0][:0].join(parts)


concat: Final = declare(
    "concat",
    "first, *others",
    concat_rule,
    _concat,
    column=lambda F, *parts: F.concat(*parts),
    about="Strings, or bytes, put together.",
)


def _concat_ws(separator: Any, *parts: Any) -> Any:
    return None if separator is None else joined(separator, [part for part in parts if part is not None])


concat_ws: Final = declare(
    "concat_ws",
    "separator, *parts",
    concat_rule,
    _concat_ws,
    fails=True,
    column=lambda F, *args: F.call_function("concat_ws", *args),
    no_column=lambda node: "Spark's concat_ws takes no bytes" if node.type == BINARY else None,
    nulls="null for the separator; parts that are null are left out",
    about="Strings, or bytes, put together with a separator between them.",
)


# ---- taken apart and filled up


def _of_one_kind(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """Text with text, or bytes with bytes."""
    subject, wanted, filler = text_or_binary(args[0]), whole(args[1]), text_or_binary(args[2])
    if subject.type != filler.type:
        raise Refused(f"{subject.type} and {filler.type} do not go together; cast one of them")
    return Bound(name, subject.type, (subject, wanted, filler), options)


MOST_CHARACTERS: Final = 1 << 20
"""To which a text is filled up: one record must not fill the memory."""


def _filler(wanted: int, filler: Any, missing: int) -> Any:
    return (filler * (missing // len(filler) + 1))[:missing]


def _lpad(given: Any, wanted: int, filler: Any) -> Any:
    if not 0 <= wanted <= MOST_CHARACTERS or not filler:
        return None
    return given[:wanted] if wanted <= len(given) else _filler(wanted, filler, wanted - len(given)) + given


def _rpad(given: Any, wanted: int, filler: Any) -> Any:
    if not 0 <= wanted <= MOST_CHARACTERS or not filler:
        return None
    return given[:wanted] if wanted <= len(given) else given + _filler(wanted, filler, wanted - len(given))


def _padded(F: Any, function: str, given: Any, wanted: Any, filler: Any) -> Any:
    sound = (wanted >= 0) & (wanted <= MOST_CHARACTERS) & (F.length(filler) > 0)
    return F.when(sound, F.call_function(function, given, wanted, filler))


lpad: Final = declare(
    "lpad",
    "subject, length, filler",
    _of_one_kind,
    _lpad,
    column=lambda F, s, n, filler: _padded(F, "lpad", s, n, filler),
    about="Filled up at the left, or cut, to a length; null for an empty filler and a length below 0 or "
    "above a million. Bytes, too.",
)
rpad: Final = declare(
    "rpad",
    "subject, length, filler",
    _of_one_kind,
    _rpad,
    column=lambda F, s, n, filler: _padded(F, "rpad", s, n, filler),
    about="Filled up at the right, or cut, to a length; null for an empty filler and a length below 0 or "
    "above a million. Bytes, too.",
)


def _split_text(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    subject, delimiter = map(text_or_binary, args)
    if subject.type != delimiter.type:
        raise Refused(f"{subject.type} and {delimiter.type} do not go together; cast one of them")
    return Bound(name, array_of(subject.type), (subject, delimiter), options)


def _parts(given: Any, delimiter: Any) -> list[Any]:
    if delimiter:
        return list(given.split(delimiter))
    return [given[place : place + 1] for place in range(len(given))] or [given]


def _no_split_column(node: Bound) -> str | None:
    if node.type != array_of(STRING):
        return "Spark splits no bytes"
    return not_literal(1, "the delimiter")(node)


def _split_text_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    (delimiter,) = node.args[1].options
    if delimiter is None:
        return spark.F.lit(None).cast(spark.ddl(node.type))
    return spark.F.split(args[0], "".join(f"\\x{{{ord(each):x}}}" for each in delimiter), -1)


split_text: Final = declare(
    "split_text",
    "subject, delimiter",
    _split_text,
    _parts,
    typed_column=_split_text_column,
    no_column=_no_split_column,
    about="The parts between a delimiter (no pattern); empty parts stay, an empty delimiter splits characters. "
    "Bytes, too. ksqlDB's SPLIT.",
)


def _instr(given: str | None, part: str | None, position: int | None, occurrence: int | None) -> int:
    if given is None or part is None or position is None or occurrence is None or occurrence < 1 or position == 0:
        return 0
    at = -1
    if position > 0:
        start = position - 1
        for _ in range(min(occurrence, len(given) + 2)):
            at = given.find(part, start)
            if at < 0 or start > len(given):
                return 0
            start = at + 1
    else:
        end = len(given) + position
        for _ in range(min(occurrence, len(given) + 2)):
            at = given.rfind(part, 0, end + len(part)) if end >= 0 else -1
            if at < 0:
                return 0
            end = at - 1
    return at + 1


def _from_the_start(node: Bound) -> str | None:
    if all(each.function == "lit" and each.options[0] == 1 for each in node.args[2:]):
        return None
    return "Spark's instr looks for the first occurrence alone"


instr: Final = declare(
    "instr",
    "text, part, position=1, occurrence=1",
    takes(text, text, whole, gives=INT),
    _instr,
    column=lambda F, given, part, *_: F.coalesce(F.call_function("instr", given, part), F.lit(0)),
    no_column=_from_the_start,
    nulls="0",
    about="Where a part is found, 0 if nowhere; a negative position counts from the end and searches backwards.",
)


def _character(given: Any) -> str | None:
    if isinstance(given, str):
        if not re.fullmatch(r"(?:\\u[0-9a-fA-F]{4}){1,2}", given):
            return None
        units = bytes.fromhex("".join(given.split("\\u")))
        made = units.decode("utf-16-be")
        return made if len(made) == 1 else None
    return None if 0xD800 <= given <= 0xDFFF else chr(given)


def md5_digits(given: str) -> str:
    import hashlib  # noqa: PLC0415  it loads OpenSSL

    return hashlib.md5(given.encode(), usedforsecurity=False).hexdigest()


chr_: Final = declare(
    "chr",
    "code",
    takes(lambda node: text(node) if node.type == STRING else whole(node), gives=STRING),
    _character,
    fails=True,
    # Spark's chr knows the codes below 256 only.
    about=r"The character of a code point, given as a number or as `\uXXXX`; null if there is none.",
)
md5: Final = declare(
    "md5",
    "text",
    takes(text, gives=STRING),
    md5_digits,
    column=lambda F, given: F.md5(given),
    fails=True,
    about="The MD5 of its UTF-8, in small hexadecimal digits.",
)


# ---- masks

_MASKS: Final = "upper='X', lower='x', digit='n', other='-'"
_MASK_NULLS: Final = "null; a mask that is null keeps the characters"


def _masked(given: str, masks: Sequence[str | None]) -> str:
    if any(each is not None and len(each) != 1 for each in masks):
        raise ValueError("a mask is one character")
    capital, small, digit, other = masks
    by_category = {"Lu": capital, "Ll": small, "Nd": digit}

    def mask_of(character: str) -> str:
        mask = by_category.get(category(character), other)
        return character if mask is None else mask

    return "".join(map(mask_of, given))


def _mask(given: str | None, *masks: str | None) -> str | None:
    return None if given is None else _masked(given, masks)


def _mask_left(given: str | None, count: int | None, *masks: str | None) -> str | None:
    if given is None or count is None or count < 0:
        return None
    return _masked(given[:count], masks) + given[count:]


def _mask_right(given: str | None, count: int | None, *masks: str | None) -> str | None:
    if given is None or count is None or count < 0:
        return None
    kept = max(len(given) - count, 0)
    return given[:kept] + _masked(given[kept:], masks)


def _keep_left(given: str | None, count: int | None, *masks: str | None) -> str | None:
    if given is None or count is None or count < 0:
        return None
    return given[:count] + _masked(given[count:], masks)


def _keep_right(given: str | None, count: int | None, *masks: str | None) -> str | None:
    if given is None or count is None or count < 0:
        return None
    kept = max(len(given) - count, 0)
    return _masked(given[:kept], masks) + given[kept:]


def _fixed_masks(node: Bound) -> str | None:
    for each in node.args[-4:]:
        if each.function != "lit" or (each.options[0] is not None and len(each.options[0]) != 1):
            return f"Spark's mask needs single characters that are the same for all records, {node.function} has not"
    return None


def _around(F: Any, given: Any, left: Any, masks: Sequence[Any], masked_first: bool) -> Any:
    """Two parts, of which one is masked; `left` is the length of the first."""
    first, rest = F.substr(given, F.lit(1), left), F.substr(given, left + 1)
    return F.concat(F.mask(first, *masks), rest) if masked_first else F.concat(first, F.mask(rest, *masks))


def _by_left(masked_first: bool) -> Any:
    return lambda F, given, count, *masks: F.when(
        count >= 0, _around(F, given, F.least(count, F.length(given)), masks, masked_first)
    )


def _by_right(masked_first: bool) -> Any:
    return lambda F, given, count, *masks: F.when(
        count >= 0, _around(F, given, F.greatest(F.length(given) - count, F.lit(0)), masks, masked_first)
    )


mask: Final = declare(
    "mask",
    f"text, {_MASKS}",
    takes(text, gives=STRING),
    _mask,
    column=lambda F, given, *masks: F.mask(given, *masks),
    no_column=_fixed_masks,
    nulls=_MASK_NULLS,
    fails=True,
    about="With letters, digits and all else hidden behind one character each.",
)
mask_left: Final = declare(
    "mask_left",
    f"text, count, {_MASKS}",
    takes(text, whole, text, gives=STRING),
    _mask_left,
    column=_by_left(masked_first=True),
    no_column=_fixed_masks,
    nulls=_MASK_NULLS,
    fails=True,
    about="The first characters masked.",
)
mask_right: Final = declare(
    "mask_right",
    f"text, count, {_MASKS}",
    takes(text, whole, text, gives=STRING),
    _mask_right,
    column=_by_right(masked_first=False),
    no_column=_fixed_masks,
    nulls=_MASK_NULLS,
    fails=True,
    about="The last characters masked.",
)
mask_keep_left: Final = declare(
    "mask_keep_left",
    f"text, count, {_MASKS}",
    takes(text, whole, text, gives=STRING),
    _keep_left,
    column=_by_left(masked_first=False),
    no_column=_fixed_masks,
    nulls=_MASK_NULLS,
    fails=True,
    about="All but the first characters masked.",
)
mask_keep_right: Final = declare(
    "mask_keep_right",
    f"text, count, {_MASKS}",
    takes(text, whole, text, gives=STRING),
    _keep_right,
    column=_by_right(masked_first=True),
    no_column=_fixed_masks,
    nulls=_MASK_NULLS,
    fails=True,
    about="All but the last characters masked.",
)
