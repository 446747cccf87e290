"""What each function gives, by example: the specification of their Python bodies, and rows for their Spark columns."""

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from ottla.streams.expressions import Expression, lit, value
from ottla.streams.expressions import expression as language
from ottla.streams.expressions.bound import FUNCTIONS

INT_MIN, INT_MAX, LONG_MIN, LONG_MAX = -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1


def long(number: int | None) -> Expression:
    return lit(number).cast("long")


def double(number: float | None) -> Expression:
    return lit(number).cast("double")


def texts(*items: str | None) -> Expression:
    return language.array(*items)


def coalesced(first: Expression, second: Expression) -> Expression:
    return first.coalesce(second)


def pairs(**entries: Any) -> Expression:
    return language.call(FUNCTIONS["create_map"], [part for entry in entries.items() for part in entry], {})


def at(*moment: int) -> datetime:
    """In UTC; the last of seven numbers are milliseconds."""
    return datetime(*moment[:6], tzinfo=UTC) + timedelta(milliseconds=sum(moment[6:]))  # type: ignore[misc, arg-type]


def decimal(number: str) -> Expression:
    return lit(Decimal(number))


NOW = 1_794_978_630_999
"""What time it is."""
NOTHING = lit(None)
NO_TEXT = NOTHING.cast("string")
NO_TEXTS = value["none"]
"""An array of strings that is null."""

CASES: dict[str, list[tuple[tuple[Any, ...], Any]]] = {
    # ---- conditional
    "coalesce": [((None, "b", "c"), "b"), ((NO_TEXT,), None), ((None, 1, 2.5), 1.0)],
    "ifnull": [(("a", "b"), "a"), ((NO_TEXT, "b"), "b"), ((NO_TEXT, NO_TEXT), None)],
    "nullif": [((1, 1), None), ((1, 2), 1), ((1, NOTHING), 1), ((math.nan, math.nan), None), (("a", "A"), "a")],
    "least": [((3, 1, 2), 1), ((3, None), 3), ((NO_TEXT,), None), ((1.5, math.nan), 1.5)],
    "greatest": [((3, 1, 2), 3), ((3, None), 3), ((1.5, math.nan), math.nan), (("a", "b"), "b")],
    "elt": [
        ((1, "do", "re", "mi"), "do"), ((3, "do", "re", "mi"), "mi"), ((4, "do", "re", "mi"), None), ((0, "do"), None),
        ((-1, "do"), None), ((None, "do"), None), ((1, NO_TEXT), None),
    ],
    "field_position": [
        (("b", "a", "b"), 2), (("c", "a", "b"), 0), ((NO_TEXT, "a"), 0), (("a", NO_TEXT, "a"), 2), (("a",), 0),
    ],
    "is_distinct": [
        ((1, 2), True), ((1, 1), False), ((1, NOTHING), True), ((NO_TEXT, NO_TEXT), False),
        ((math.nan, math.nan), False),
    ],
    # ---- strings
    "lower": [(("ÄbC",), "äbc"), ((NO_TEXT,), None)],
    "upper": [(("äbc",), "ÄBC"), ((NO_TEXT,), None)],
    "initcap": [
        (("a rIVER in prague",), "A River In Prague"), (("  two  gaps",), "Two  Gaps"),
        (("o'neil-smith",), "O'neil-smith"), (("",), ""), ((NO_TEXT,), None),
    ],
    "trim": [(("  a b ",), "a b"), (("\ta ",), "\ta"), ((NO_TEXT,), None)],
    "length": [(("",), 0), (("aé😀",), 3), ((NO_TEXT,), None)],
    "contains": [(("kafka", "fk"), True), (("kafka", ""), True), (("kafka", "x"), False), (("a", None), None)],
    "startswith": [(("kafka", "ka"), True), (("kafka", "af"), False), ((NO_TEXT, "a"), None)],
    "endswith": [(("kafka", "ka"), True), (("kafka", "af"), False), ((NO_TEXT, "a"), None)],
    "replace": [(("aaa", "a", "bb"), "bbbbbb"), (("aaa", "", "b"), "aaa"), (("aaa", NO_TEXT, "b"), None)],
    "concat": [(("a", "b", "c"), "abc"), (("a", NO_TEXT), None), ((b"a", b"\xff"), b"a\xff")],
    "concat_ws": [
        (("-", "a", "b"), "a-b"), (("-", "a", NO_TEXT, "c"), "a-c"), ((NO_TEXT, "a", "b"), None), (("-",), ""),
        (("", NO_TEXT), ""),
    ],
    "lpad": [
        (("desk", 9, "-="), "-=-=-desk"), (("desk", 3, "-="), "des"), (("desk", 0, "x"), ""), (("desk", -1, "x"), None),
        (("desk", 5, ""), None), ((NO_TEXT, 5, "x"), None), (("a", INT_MAX, "x"), None),
        ((b"\x01", 3, b"\xff"), b"\xff\xff\x01"),
    ],
    "rpad": [
        (("desk", 9, "-="), "desk-=-=-"), (("desk", 3, "-="), "des"), (("desk", 0, "x"), ""), (("desk", -1, "x"), None),
        (("desk", 5, ""), None), (("desk", NOTHING, "x"), None), ((b"\x01", 3, b"\xff"), b"\x01\xff\xff"),
    ],
    "split_text": [
        (("a.b..c.", "."), ["a", "b", "", "c", ""]), (("ab", ""), ["a", "b"]), (("", ","), [""]), (("", ""), [""]),
        (("a", NO_TEXT), None), ((b"a\x00b", b"\x00"), [b"a", b"b"]), (("a||b", "||"), ["a", "b"]),
    ],
    "instr": [
        (("banana bandana", "an"), 2), (("banana bandana", "an", 5), 9), (("banana bandana", "an", 3, 3), 12),
        (("banana bandana", "an", -4), 9), (("banana bandana", "an", -4, 3), 2), (("abc", "z"), 0),
        ((NO_TEXT, "a"), 0), (("abc", NO_TEXT), 0), (("abc", "a", 0), 0), (("abc", "a", 1, 2), 0), (("abc", "c", 9), 0),
    ],
    "chr": [((8364,), "€"), ((0x1F600,), "😀"), (("\\u20AC",), "€"), (("\\uD83D\\uDE00",), "😀"), ((-1,), None),
            ((0x110000,), None), ((0xD800,), None), (("K",), None), ((NO_TEXT,), None)],
    "md5": [(("",), "d41d8cd98f00b204e9800998ecf8427e"), (("ü",), "c03410a5204b21cd8229ff754688d743")],
    "mask": [
        (("Gate B7, 9:05",), "Xxxx-Xn--n-nn"), (("Gate B7, 9:05", "U", "l", "0", "."), "Ulll.U0..0.00"),
        (("Ab 1", None, "z", None, None), "Az 1"), (("é É",), "x-X"), (("😀",), "-"), (("º",), "-"), ((NO_TEXT,), None),
        (("Ab", "", "x", "n", "-"), None),
    ],
    "mask_left": [(("Ab12", 2), "Xx12"), (("Ab12", 9), "Xxnn"), (("Ab12", 0), "Ab12"), (("Ab12", -1), None)],
    "mask_right": [(("Ab12", 2), "Abnn"), (("Ab12", 9), "Xxnn"), (("Ab12", 0), "Ab12"), (("Ab12", NOTHING), None)],
    "mask_keep_left": [(("Ab12", 1), "Axnn"), (("Ab12", 9), "Ab12"), (("Ab12", 0), "Xxnn"), (("Ab12", -1), None)],
    "mask_keep_right": [(("Ab12", 1), "Xxn2"), (("Ab12", 9), "Ab12"), (("Ab12", 0), "Xxnn"), ((NO_TEXT, 1), None)],
    # ---- regex
    "like": [
        (("kafka", "k%a"), True), (("kafka", "k_fka"), True), (("kafka", "af"), False), (("a\nb", "a%"), True),
        (("50%", "50!%", "!"), True), (("505", "50!%", "!"), False), (("", "%"), True), (("a.c", "a.c"), True),
        (("abc", "a.c"), False), ((NO_TEXT, "a"), None), (("a\n", "a"), False),
    ],
    "regexp_extract": [
        (("o.r", "the word for"), None), (("([a-z]+)=([0-9]+)", "at x=40", 2), "40"),
        (("([a-z]+)=([0-9]+)", "at x=40", 3), None), (("x", "Vltava"), None), ((NO_TEXT, "a"), None),
        (("a.a", "Vltava"), "ava"),
        (("(a)|(b)", "b", 1), None),
    ],
    "regexp_extract_all": [
        (("[0-9]+", "1 and 22"), ["1", "22"]), (("([a-z])([0-9])", "a1 b2", 2), ["1", "2"]), (("x", "abc"), []),
        (("x", "abc", 1), None), (("x", NO_TEXT), None),
    ],
    "regexp_replace": [
        (("a1b22", "[0-9]+", "#"), "a#b#"), (("1883-07", "(....)-(..)", "$2/$1"), "07/1883"),
        (("a", "a", "\\$"), "$"), (("a", "a", "$x"), None), ((NO_TEXT, "a", "b"), None), (("a", "a", NO_TEXT), None),
    ],
    "regexp_split": [
        (("a1b22c", "[0-9]+"), ["a", "b", "c"]), ((",a,", ","), ["", "a", ""]), (("ab", ""), ["a", "b"]),
        ((NO_TEXT, ","), None),
    ],
    # ---- numbers
    "acos": [((1,), 0.0), ((2,), math.nan), ((NOTHING,), None)],
    "asin": [((0,), 0.0), ((-2,), math.nan)],
    "atan": [((0,), 0.0), ((math.inf,), math.pi / 2)],
    "atan2": [((0, 1), 0.0), ((1, 0), math.pi / 2), ((0.0, -1.0), math.pi), ((NOTHING, 1), None)],
    "cos": [((0,), 1.0), ((math.inf,), math.nan)],
    "sin": [((0,), 0.0), ((math.inf,), math.nan)],
    "tan": [((0,), 0.0), ((math.inf,), math.nan)],
    "cosh": [((0,), 1.0), ((1000,), math.inf)],
    "sinh": [((0,), 0.0), ((-1000,), -math.inf)],
    "tanh": [((0,), 0.0), ((1000,), 1.0)],
    "cot": [((0,), math.inf), ((-0.0,), -math.inf), ((math.inf,), math.nan)],
    "cbrt": [((27,), 3.0), ((-8,), -2.0)],
    "degrees": [((math.pi,), 180.0), ((0,), 0.0)],
    "radians": [((180,), math.pi), ((0,), 0.0)],
    "exp": [((0,), 1.0), ((1000,), math.inf), ((-math.inf,), 0.0)],
    "sqrt": [((4,), 2.0), ((-1,), math.nan), ((NOTHING,), None)],
    "power": [
        ((2, 10), 1024.0), ((10, 400), math.inf), ((-10, 401), -math.inf), ((0, -1), math.inf), ((-0.0, -1), -math.inf),
        ((-8, 0.5), math.nan), ((1, math.nan), math.nan), ((1, math.inf), math.nan), ((math.nan, 0), 1.0),
        ((2, NOTHING), None),
    ],
    "ln": [((1,), 0.0), ((0,), -math.inf), ((-1,), math.nan), ((NOTHING,), None)],
    "log": [((2, 8), 3.0), ((0, 8), math.nan), ((1, 8), math.nan), ((-2, 8), math.nan), ((2, 0), -math.inf),
            ((2, -1), math.nan), ((2, NOTHING), None)],
    "pi": [((), math.pi)],
    "sign": [((-7,), -1), ((0,), 0), ((2.5,), 1), ((-0.0,), 0), ((math.nan,), 0), ((NOTHING,), None)],
    "trunc": [
        ((2.9,), 2), ((-2.9,), -2), ((7,), 7), ((math.nan,), None), ((1e300,), None), ((1.119, 2), 1.11),
        ((-1.119, 2), -1.11), ((1234.5, -2), 1200.0), ((1278, -2), 1200), ((1.5, 9), 1.5), ((math.inf, 1), math.inf),
        ((decimal("-9.87"),), Decimal(-9)), ((decimal("9.87"), 1), Decimal("9.80")),
    ],
    "generate_series": [
        ((1, 3), [1, 2, 3]), ((3, 1), [3, 2, 1]), ((1, 10, 4), [1, 5, 9]), ((5, 1, -2), [5, 3, 1]), ((1, 1), [1]),
        ((1, 3, 0), None), ((1, 3, -1), None), ((long(1), 2), [1, 2]), ((0, 2_000_000), None), ((1, NOTHING), None),
    ],
    "random": [
        (("t", 0, long(7), 0), 0.951691054394078), (("t", 0, long(7), 1), 0.13699724759173426),
        ((NO_TEXT, 0, long(7), 0), None),
    ],
    "random_uuid": [(("t", 0, long(7), 0), "f3a20662-84b0-4cb6-ad9a-4c8c69de4c2d"), ((NO_TEXT, 0, long(7), 0), None)],
    # ---- geo
    "geo_distance": [
        ((50.0755, 14.4378, -34.6037, -58.3816), 11812.137659405807),
        ((50.0755, 14.4378, -34.6037, -58.3816, "MILES"), 7340.174696843132),
        ((0, 0, 0, 0), 0.0), ((91, 0, 0, 0), None), ((0, 181, 0, 0), None), ((0, 0, 0, 1, "yards"), None),
        ((NOTHING, 0, 0, 0), None),
    ],
    # ---- lists
    "array_distinct": [
        (([1, 2, 1, None, None],), [1, 2, None]), (([math.nan, math.nan, 0.0, -0.0],), [math.nan, 0.0]),
        ((NO_TEXTS,), None),
    ],
    "array_union": [(([1, 2, 2], [3, 1, None]), [1, 2, 3, None]), ((NO_TEXTS, ["a"]), None)],
    "array_except": [(([1, 2, 2, None, 3], [3]), [1, 2, None]), (([1], [1]), []), ((["a"], NO_TEXTS), None)],
    "array_intersect": [(([1, 2, 2, None, 3], [None, 3, 2]), [2, None, 3]), ((["a"], NO_TEXTS), None)],
    "array_concat": [
        (([1, None], [2]), [1, None, 2]), ((["a"], NO_TEXTS), ["a"]), ((NO_TEXTS, ["a"]), ["a"]),
        ((NO_TEXTS, NO_TEXTS), None),
    ],
    "array_contains": [
        (([1, 2], 2), True), (([1, 2], 3), False), (([1, None], NOTHING), True), (([1], NOTHING), False),
        ((NO_TEXTS, "a"), False), (([math.nan], math.nan), True),
    ],
    "array_remove": [(([1, 2, 1, None], 1), [2, None]), (([1, None], NOTHING), [1]), ((NO_TEXTS, "a"), None)],
    "array_length": [(([1, None],), 2), ((texts(),), 0), ((NO_TEXTS,), None)],
    "array_max": [(([1, None, 3],), 3), ((texts(),), None), (([None, None],), None), (([1.0, math.nan],), math.nan)],
    "array_min": [(([1, None, 3],), 1), ((texts(),), None), ((["b", "a"],), "a")],
    "array_sort": [
        (([3, None, 1],), [1, 3, None]), (([3, None, 1, None], "desc"), [3, 1, None, None]), (([3, 1], "up"), None),
        (([math.nan, 1.0, -math.inf],), [-math.inf, 1.0, math.nan]), ((NO_TEXTS,), None),
    ],
    "slice": [
        (([1, 2, 3, 4], 2, 3), [2, 3]), (([1, 2, 3], NOTHING, 2), [1, 2]), (([1, 2, 3], 2, NOTHING), [2, 3]),
        (([1, 2, 3], 0, 2), None), (([1, 2, 3], 2, 9), None), (([1, 2], 3, 2), []), ((NO_TEXTS, 1, 1), None),
    ],
    "array_join": [
        (([1, None, 2],), "1,null,2"), (([1.0, 1e10], "; "), "1.0; 1.0E10"), (([True, False], ""), "truefalse"),
        ((texts(),), ""), ((["a", "b"], NO_TEXT), None), ((NO_TEXTS,), None),
    ],
    # ---- lambdas
    "transform": [
        (([1, 2, None], lambda x: x * 2), [2, 4, None]), ((["a"], lambda x: x.upper()), ["A"]),
        ((NO_TEXTS, lambda x: x), None),
        ((pairs(a=1, b=2), lambda k, v: k.upper(), lambda k, v: v * 2), {"A": 2, "B": 4}),
        ((pairs(a=1, b=2), lambda k, v: "x", lambda k, v: v), None),
        (([[1, 2], [3]], lambda xs: xs.transform(lambda x: x + xs.array_length())), [[3, 4], [4]]),
    ],
    "filter": [
        ((pairs(a=1, b=2), lambda k, v: (k == "b") & (v > 1)), {"b": 2}),
        (([1, 5, None, 7], lambda x: x > 3), [5, 7]), ((NO_TEXTS, lambda x: x == "a"), None),
    ],
    "any": [((pairs(a=1), lambda k, v: v > 0), True), 
        (([1, 5], lambda x: x > 3), True), (([1, None], lambda x: x > 3), False),
        ((NO_TEXTS, lambda x: x == "a"), None),
    ],
    "all": [((pairs(a=1), lambda k, v: v > 1), False), 
        (([4, 5], lambda x: x > 3), True), (([4, None], lambda x: x > 3), False), ((texts(), lambda x: x == "a"), True),
    ],
    "reduce": [
        ((pairs(b=1, a=2), "", lambda done, k, v: done + k + v.cast("string")), "a2b1"),
        (([1, 2, 3], 10, lambda total, x: total + x), 16), (([1.5, 2.5], 0, lambda total, x: total + x), 4.0),
        ((["a", "b"], "", lambda done, x: done + x + ";"), "a;b;"), ((NO_TEXTS, "x", lambda done, x: done + x), "x"),
        ((["a"], NO_TEXT, coalesced), None),
    ],
    # ---- maps
    "create_map": [
        (("a", 1, "b", None), {"a": 1, "b": None}), (("a", 1, "a", 2), {"a": 2}), ((NO_TEXT, 1), None), ((), {}),
    ],
    "as_map": [
        ((["a", "b", "a"], [1, 2]), {"a": None, "b": 2}), ((["a"], [1, 2]), {"a": 1}), (([None, "a"], [1, 2]), None),
        ((NO_TEXTS, ["a"]), None),
    ],
    "split_to_map": [
        (("a=1;b=2;c", ";", "="), {"a": "1", "b": "2"}), (("a=1;a=2", ";", "="), {"a": "2"}), (("a=1", ";", ";"), None),
        (("a=1", "", "="), None), (("", ";", "="), {}), ((NO_TEXT, ";", "="), None),
    ],
    "map_union": [
        ((pairs(a=1, b=2), pairs(b=3)), {"a": 1, "b": 3}), ((pairs(a=1), NOTHING), {"a": 1}),
        ((NOTHING, pairs(a=1)), {"a": 1}), ((NOTHING, NOTHING), None),
    ],
    "map_get": [
        ((pairs(a=1), "a"), 1), ((pairs(a=1), "b"), None), ((pairs(a=1), NO_TEXT), None), ((NOTHING, "a"), None),
    ],
    "map_keys": [((pairs(b=1, a=2),), ["a", "b"]), ((NOTHING,), None)],
    "map_values": [((pairs(b=1, a=2),), [2, 1]), ((NOTHING,), None)],
    "entries": [((pairs(b=1, a=None),), [{"K": "a", "V": None}, {"K": "b", "V": 1}]), ((NOTHING,), None)],
    # ---- dates
    "now": [((), NOW)],
    "from_days": [((0,), date(1970, 1, 1)), ((-1,), date(1969, 12, 31)), ((INT_MAX,), None)],
    "unix_date": [((date(1970, 1, 2),), 1), ((NOTHING,), None)],
    "from_unixtime": [((long(1500),), at(1970, 1, 1, 0, 0, 1, 500)), ((long(LONG_MAX),), None)],
    "unix_timestamp": [((at(1970, 1, 1, 0, 0, 1, 500),), 1500), ((NOTHING,), None)],
    "dateadd": [
        (("DAYS", 3, date(2020, 2, 28)), date(2020, 3, 2)), (("hours", 47, date(2020, 1, 1)), date(2020, 1, 2)),
        (("DAY", -1, date(1, 1, 1)), None), (("WEEKS", 1, date(2020, 1, 1)), None),
        (("DAYS", NOTHING, date(2020, 1, 1)), None),
        (("SECONDS", -86_401, date(2020, 1, 2)), date(2020, 1, 1)),
    ],
    "datesub": [(("DAYS", 1, date(2020, 3, 1)), date(2020, 2, 29)), (("DAYS", -1, date(9999, 12, 31)), None)],
    "timeadd": [
        (("HOURS", 2, time(23)), time(1)), (("MILLISECONDS", 1, time(0)), time(0, 0, 0, 1000)),
        (("DAYS", 1, time(5)), time(5)),
    ],
    "timesub": [(("MINUTES", 1, time(0)), time(23, 59)), (("X", 1, time(0)), None)],
    "timestampadd": [
        (("HOURS", 25, at(2020, 2, 28)), at(2020, 2, 29, 1)), (("DAYS", 1, at(9999, 12, 31)), None),
        (("DAYS", 1, NOTHING), None),
    ],
    "timestampsub": [(("SECONDS", 1, at(1970, 1, 1)), at(1969, 12, 31, 23, 59, 59))],
    "format_date": [
        ((date(2020, 2, 3), "yyyy-MM-dd"), "2020-02-03"), ((date(2020, 2, 3), "EEE, d MMM yy"), "Mon, 3 Feb 20"),
        ((date(2020, 12, 31), "EEEE MMMM D 'o''clock'"), "Thursday December 366 o'clock"),
        ((NOTHING, "y"), None),
    ],
    "format_time": [((time(13, 5, 7, 89_000), "h:mm:ss.SSS a"), "1:05:07.089 PM"), ((time(0), "kk K HH"), "24 0 00")],
    "format_timestamp": [
        ((at(2020, 7, 1, 12), "yyyy-MM-dd'T'HH:mm:ssX"), "2020-07-01T12:00:00Z"),
        ((at(2020, 7, 1, 12), "HH:mm xxx VV", "Europe/Berlin"), "14:00 +02:00 Europe/Berlin"),
        ((at(2020, 7, 1, 12), "HH:mm Z", "+05:30"), "17:30 +0530"), ((at(2020, 7, 1, 12), "HH", "Nowhere/Here"), None),
    ],
    "parse_date": [
        (("2020-02-03", "yyyy-MM-dd"), date(2020, 2, 3)), (("2021-2-30", "yyyy-M-d"), date(2021, 3, 2)),
        (("3 feb 20", "d MMM yy"), date(2020, 2, 3)), (("20200203", "yyyyMMdd"), date(2020, 2, 3)),
        (("2020", "yyyy-MM-dd"), None),
        ((NO_TEXT, "yyyy"), None),
    ],
    "parse_time": [
        (("13:05", "HH:mm"), time(13, 5)), (("1:05 pm", "h:mm a"), time(13, 5)), (("12 AM", "h a"), time(0)),
        (("25", "HH"), None),
    ],
    "parse_timestamp": [
        (("2020-07-01 12:30:15.250", "yyyy-MM-dd HH:mm:ss.SSS"), at(2020, 7, 1, 12, 30, 15, 250)),
        (("2020-07-01T12:00+02:00", "yyyy-MM-dd'T'HH:mmXXX"), at(2020, 7, 1, 10)),
        (("2020-07-01 12", "yyyy-MM-dd HH", "Europe/Berlin"), at(2020, 7, 1, 10)), (("12", "HH"), at(1970, 1, 1, 12)),
        (("2020-02-30", "yyyy-MM-dd"), None), (("x", "yyyy"), None),
    ],
    "convert_tz": [
        ((at(2020, 7, 1, 12), "UTC", "Europe/Berlin"), at(2020, 7, 1, 14)),
        ((at(2020, 7, 1, 12), "Europe/Berlin", "UTC"), at(2020, 7, 1, 10)),
        ((at(2020, 7, 1, 12), "UTC", "Mars"), None),
    ],
    # ---- json
    "json_records": [(('{"b": 1, "a": [2]}',), {"b": "1", "a": "[2]"}), (("[]",), None)],
    "extract_json_field": [
        (('{"a":{"b":[1,"x"]}}', "$.a.b[1]"), "x"), (('{"a":{"b":[1,2.0]}}', "$.a"), '{"b":[1,2.0]}'),
        (('{"a":null}', "$.a"), "null"),
        (('{"a b":true}', "$['a b']"), "true"), (('{"a":1}', "$.b"), None), (("[1]", "$[1]"), None),
        (("{bad", "$.a"), None),
        (('{"a":1}', "a"), None), ((NO_TEXT, "$.a"), None),
    ],
    "is_json_string": [
        (("[]",), True), (("{bad",), False), (("",), False), (("01",), False), (("NaN",), False), ((NO_TEXT,), False),
    ],
    "json_array_contains": [
        (("[1, 2]", 2), True), (('["2"]', 2), False), (("[true]", True), True), (("[null]", NOTHING), True),
        (("{}", 1), False),
        (("bad", 1), False), ((NO_TEXT, 1), False),
    ],
    "json_array_length": [(("[1, [2]]",), 2), (("{}",), None), (("bad",), None), ((NO_TEXT,), None)],
    "json_items": [(('[{"b": 1, "a": 2}, "x"]',), ['{"b":1,"a":2}', '"x"']), (("{}",), None)],
    "json_keys": [(('{"b": 1, "a": 2}',), ["b", "a"]), (("[]",), None)],
    "json_concat": [
        (('{"a":1}', '{"b":2,"a":3}'), '{"a":3,"b":2}'), (("[1]", "[2]"), "[1,2]"),
        (("1", "[2]", '{"a":3}'), '[1,2,{"a":3}]'),
        (("1", "bad"), None), (("1", NO_TEXT), None),
    ],
    "to_json_string": [
        ((1,), "1"), (("a\"b",), '"a\\"b"'), (([1, None],), "[1,null]"), (({"b": 1, "a": None},), '{"a":null,"b":1}'),
        ((b"\x00\xff",), '"AP8="'), ((date(2020, 1, 2),), '"2020-01-02"'), ((decimal("1.50"),), "1.50"),
        ((1e10,), "1.0E10"), ((NO_TEXT,), "null"),
    ],
    # ---- bytes
    "to_bytes": [
        (("00fF", "hex"), b"\x00\xff"), (("0x0f", "HEX"), b"\x0f"), (("X'0f'", "hex"), b"\x0f"), (("0", "hex"), None),
        (("ü", "utf8"), "ü".encode()), (("ü", "ascii"), None), (("AP8=", "base64"), b"\x00\xff"),
        (("A", "base64"), None),
        (("a", "rot13"), None), ((NO_TEXT, "hex"), None),
    ],
    "from_bytes": [
        ((b"\x00\xff", "hex"), "00ff"), ((b"\xff", "utf8"), None), ((b"\x00\xff", "base64"), "AP8="),
        ((b"a", "ascii"), "a"),
        ((b"\xff", "ascii"), None), ((b"a", "rot13"), None),
    ],
    "encode": [
        (("50C599C3AD6B6F7079", "hex", "utf8"), "Příkopy"), (("Karlin 8", "ascii", "base64"), "S2FybGluIDg="),
        (("zz", "hex", "utf8"), None),
    ],
    "int_from_bytes": [
        ((b"\x00\x00\x01\x00",), 256), ((b"\x00\x01\x00\x00", "little_endian"), 256), ((b"\x00",), None),
        ((b"\0\0\0\0", "x"), None),
    ],
    "long_from_bytes": [((b"\xff" * 8,), -1), ((b"\x01" + b"\0" * 7, "LITTLE_ENDIAN"), 1), ((b"\x00",), None)],
    "double_from_bytes": [
        ((b"\x3f\xf8\0\0\0\0\0\0",), 1.5), ((b"\0\0\0\0\0\0\xf8\x3f", "LITTLE_ENDIAN"), 1.5), ((b"",), None),
    ],
    "uuid_from_bytes": [((bytes(range(16)),), "00010203-0405-0607-0809-0a0b0c0d0e0f"), ((b"",), None)],
    # ---- urls
    "url_encode": [(("a b&ü~*",), "a+b%26%C3%BC%7E*"), ((NO_TEXT,), None)],
    "url_decode": [(("a+b%26%C3%BC",), "a b&ü"), (("100%",), None), (("%zz",), None)],
    "url_protocol": [(("http://a.b/c",), "http"), (("/a",), None), (("a b",), None)],
    "url_host": [
        (("http://u@a.b:80/c",), "a.b"), (("http://[::1]:80/",), "[::1]"), (("mailto:a@b",), None),
        (("http://a_b/",), None),
    ],
    "url_port": [(("http://a.b:81/c",), 81), (("http://a.b/c",), None)],
    "url_path": [(("http://a.b/c%20d?x=1#f",), "/c d"), (("http://a.b",), ""), (("mailto:a@b",), None)],
    "url_query": [(("http://a.b/c?x=%26&y#f",), "x=&&y"), (("http://a.b/c",), None)],
    "url_fragment": [(("http://a.b/c#f%20g",), "f g"), (("http://a.b/c",), None)],
    "url_parameter": [
        (("http://a.b/?x=1&y=a+b%26&x=2", "y"), "a b&"), (("http://a.b/?x=1&x=2", "x"), "1"),
        (("http://a.b/?x", "x"), ""),
        (("http://a.b/?x=1", "z"), None), (("http://a.b/", "x"), None),
    ],
    # ---- ksqlDB's rules
    "ksql_add": [
        ((decimal("9.5"), decimal("0.75")), Decimal("10.25")), ((INT_MAX, 1), INT_MIN),
        ((long(LONG_MAX), 1), LONG_MIN), ((1.5, 1), 2.5), ((1, NOTHING), None),
    ],
    "ksql_subtract": [((INT_MIN, 1), INT_MAX), ((long(LONG_MIN), 1), LONG_MAX), ((1.5, 1), 0.5)],
    "ksql_multiply": [
        ((INT_MAX, 2), -2), ((long(LONG_MIN), -1), LONG_MIN), ((long(1 << 62), 6), LONG_MIN), ((1.5, 2), 3.0),
    ],
    "ksql_divide": [
        ((decimal("1.0"), 4), Decimal("0.2500000000000")), ((decimal("1.0"), 0), None),
        ((decimal("1.0"), 3), None),
        ((7, 2), 3), ((-7, 2), -3), ((7, 0), None), ((INT_MIN, -1), INT_MIN), ((long(LONG_MIN), -1), LONG_MIN),
        ((7.0, 2), 3.5),
        ((1.0, 0), math.inf), ((-1.0, 0), -math.inf), ((1.0, -0.0), -math.inf), ((0.0, 0), math.nan),
    ],
    "ksql_mod": [((-7, 2), -1), ((7, 0), None), ((7.5, 2), 1.5), ((1.0, 0), math.nan), ((math.inf, 2), math.nan)],
    "ksql_negate": [((INT_MIN,), INT_MIN), ((5,), -5), ((long(LONG_MIN),), LONG_MIN), ((1.5,), -1.5)],
    "ksql_abs": [((INT_MIN,), INT_MIN), ((-5,), 5), ((long(LONG_MIN),), LONG_MIN), ((-1.5,), 1.5)],
    "ksql_floor": [
        ((decimal("-1.5"),), Decimal("-2.0")), ((-1.5,), -2.0), ((7,), 7), ((1e300,), 1e300), ((math.nan,), math.nan),
    ],
    "ksql_ceil": [
        ((decimal("1.5"),), Decimal("2.0")), ((decimal("9.5"),), None), ((-1.5,), -1.0), ((7,), 7),
        ((1e300,), 1e300), ((math.inf,), math.inf),
    ],
    "ksql_round": [
        ((-1.5,), -1), ((1.5,), 2), ((-1.6,), -2), ((0.49999999999999994,), 0), ((math.nan,), 0), ((1e300,), LONG_MAX),
        ((-math.inf,), LONG_MIN), ((7,), 7), ((1.005, 2), 1.01), ((-1.005, 2), -1.0), ((-1.006, 2), -1.01),
        ((1250.0, -2), 1300.0),
        ((1250, -2), 1300), ((NOTHING,), None),
        ((decimal("-1.5"),), Decimal(-1)), ((decimal("1.25"), 1), Decimal("1.30")), ((decimal("9.5"),), None),
    ],
    "ksql_to_int": [((3.9,), 3), ((-3.9,), -3), ((1e20,), INT_MAX), ((math.nan,), 0), ((long(1 << 32),), 0), ((7,), 7)],
    "ksql_to_long": [((-1e300,), LONG_MIN), ((3.9,), 3), ((7,), 7), ((decimal("-9.9"),), -9), ((NOTHING,), None)],
    "ksql_to_boolean": [((" YES ",), True), (("t",), True), (("1",), False), (("",), False), ((NO_TEXT,), None)],
    "ksql_item": [
        (([1, 2, 3], 1), 1), (([1, 2, 3], -1), 3), (([1, 2, 3], 0), None), (([1, 2, 3], 4), None), (([1], -2), None),
        ((NO_TEXTS, 1), None), (([1], NOTHING), None),
    ],
    "ksql_trim": [(("\t a b\n",), "a b"), (("\u00a0a",), "\u00a0a"), ((NO_TEXT,), None)],
    "ksql_length": [(("a😀",), 3), ((b"\x00\x01",), 2), ((NO_TEXT,), None)],
    "ksql_replace": [(("aa", "a", "b"), "bb"), (("ab", "", "-"), "-a-b-"), ((NO_TEXT, "a", "b"), None)],
    "ksql_concat": [(("a", NO_TEXT, "b"), "ab"), ((NO_TEXT,), ""), ((b"a", NOTHING, b"b"), b"ab")],
    "ksql_substring": [
        (("castle", 1), "castle"), (("castle", 2, 3), "ast"), (("castle", 0, 3), "cas"), (("castle", -3), "tle"),
        (("castle", -9, 2), "ca"), (("castle", 7), ""), (("castle", 1, -1), ""), ((b"abc", 2, 1), b"b"),
        ((NO_TEXT, 1), None),
        (("castle", NOTHING), None),
    ],
    # ---- ksqlDB's conversions and equality
    "ksql_text": [
        (([1, None],), "[1, null]"), ((pairs(b=1.5, a=None),), "{a=null, b=1.5}"), ((NO_TEXTS,), None),
        (({"A": 1, "B": None, "C": "x"},), "Struct{A=1,C=x}"), ((time(5, 10, 30, 7000),), "05:10:30"),
        ((time(5, 10),), "05:10"), ((True,), "true"), ((date(2026, 1, 2),), "2026-01-02"), ((decimal("1.50"),), "1.50"),
        ((at(2026, 1, 2, 3, 4, 5, 6),), "2026-01-02T03:04:05.006"),
    ],
    "ksql_to_timestamp": [
        (("2026",), at(2026, 1, 1)), (("2026-11-18T05",), at(2026, 11, 18, 5)), (("2026-01-02T00:00:00.5+0100",),
        at(2026, 1, 1, 23, 0, 0, 500)), (("x",), None), (("2026-13",), None), ((NO_TEXT,), None),
    ],
    "ksql_to_date": [(("2026-11",), date(2026, 11, 1)), (("2026-11-18T05",), None), ((NO_TEXT,), None)],
    "ksql_to_time": [(("05:10:30.007",), time(5, 10, 30, 7000)), (("25:00",), None), ((NO_TEXT,), None)],
    "ksql_equal": [
        (([1, None], [1, None]), True), (([1], [1, 2]), False), ((pairs(a=1), pairs(a=1)), True),
        ((math.nan, math.nan), True),
        (({"A": 1}, {"A": 2}), False), ((NO_TEXTS, NO_TEXTS), None),
    ],
    "ksql_nullif": [(([1], [1]), None), (([1], [2]), [1]), ((1, NOTHING), 1), ((NO_TEXT, "a"), None)],
    "ksql_cube": [
        (([1, None, 2],), [[None, None, None], [None, None, 2], [1, None, None], [1, None, 2]]), (([],), []),
        ((list(range(20)),), None), ((NO_TEXTS,), None),
    ],
}  # fmt: skip


def calls() -> list[tuple[str, Expression, Any]]:
    """Every example as an expression: name, call, what it gives."""
    return [
        (name, language.call(FUNCTIONS[name], args, {}), expected)
        for name, rows in CASES.items()
        for args, expected in rows
    ]
