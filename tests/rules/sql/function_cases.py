# ruff: noqa: E501  tables
"""What each function and operator of SQL gives, by example: the specification of both its Python and its Spark form.

Examples are SQL over one row (`COLUMNS`, `ROW`), whose columns with N in front are null.
"""

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from ottla.serdes.types import Type, parse_schema
from ottla.sql.analysis.expressions import Typing
from ottla.sql.analysis.scope import Name, Scope
from ottla.sql.functions.declare import Argument
from ottla.sql.parser import parse_expression
from ottla.streams import expressions as e
from ottla.streams.expressions import Inputs

INT_MIN, INT_MAX, LONG_MIN, LONG_MAX = -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1

_KINDS: dict[str, tuple[str, Any]] = {
    "I": ("int", 7),
    "L": ("long", 70),
    "D": ("double", 1.5),
    "E": ("decimal(5, 2)", Decimal("12.50")),
    "S": ("string", "Hello, World"),
    "B": ("boolean", True),
    "Z": ("binary", b"\x01\x02\x03\x04"),
    "DAY": ("date", date(2026, 11, 18)),
    "CLOCK": ("time", time(5, 10, 30)),
    "MOMENT": ("timestamp", datetime(2026, 11, 18, 5, 10, 30, 123000, tzinfo=UTC)),
    "A": ("array<int>", [3, None, 1, 3]),
    "T": ("array<string>", ["b", "a", None]),
    "M": ("map<string, int>", {"b": 2, "a": 1}),
    "R": ("struct<X: int, Y: string>", {"X": 1, "Y": "y"}),
}
COLUMNS: Type = parse_schema(
    {**{name: kind for name, (kind, _) in _KINDS.items()}, **{f"N{name}": kind for name, (kind, _) in _KINDS.items()}}
)
ROW: dict[str, Any] = {
    **{name: each for name, (_, each) in _KINDS.items()},
    **{f"N{name}": None for name in _KINDS},
}
TYPES = {"key": Type("string"), "value": COLUMNS}
INPUTS = Inputs(key="k", value=ROW, timestamp=1000, topic="t", partition=0, offset=7, now=1_794_978_630_999)
SCOPE = Scope(tuple(Name("S", name, Argument(e.value[name], kind)) for name, kind in COLUMNS.fields), ("S",), TYPES)


def typed(text: str) -> Argument:
    """Raises SqlError."""
    return Typing(SCOPE, {}).typed(parse_expression(text))


def evaluated(text: str) -> Any:
    return typed(text).expression.compile(TYPES)(INPUTS)


class Anything:
    """What is only known by its type."""

    def __init__(self, kind: type) -> None:
        self.kind = kind


OPERATORS: list[tuple[str, Any]] = [
    # ---- arithmetic: as Java has it
    ("7 / 2", 3), ("-7 / 2", -3), ("7 / 0", None), ("I / 2", 3), ("7 % -4", 3), ("-7 % 4", -3), ("I % 0", None),
    ("2147483647 + 1", INT_MIN), ("CAST(9223372036854775807 AS BIGINT) + 1", LONG_MIN), ("I * 2147483647", 2147483641),
    ("D / 0", math.inf), ("-D / 0", -math.inf), ("D % 0", math.nan), ("1.5 + 1", Decimal("2.5")),
    ("E * 2", Decimal("25.00")), ("E / 0", None), ("E - 0.5", Decimal("12.00")), ("E / 4", Decimal("3.1250000000000")),
    ("I + CAST(NULL AS INT)", None), ("NI + 1", None), ("L + I", 77), ("I + D", 8.5), ("E + D", 14.0), ("-I", -7), ("-NI", None),
    ("'a' + 'b'", "ab"), ("S + NS", None), ("'a' || NS || 'b'", "ab"), ("-2147483648", INT_MIN),
    # ---- comparison: two-valued
    ("NI = 1", False), ("NOT (NI = 1)", True), ("NI <> 1", False), ("NI = NI", False), ("I = 7.0", True),
    ("I > 6E0", True), ("E = 12.5", True), ("S = 'Hello, World'", True), ("B = TRUE", True),
    ("A = ARRAY[3, NULL, 1, 3]", True), ("A <> ARRAY[3]", True), ("M = MAP('a':=1, 'b':=2)", True),
    ("R = STRUCT(X:=1, Y:='y')", True), ("NA = A", False), ("DAY = '2026-11-18'", True), ("DAY < MOMENT", True),
    ("MOMENT > '2026-11-18T05'", True), ("CLOCK >= '05:10'", True), ("Z = 'AQIDBA=='", True),
    ("I BETWEEN 1 AND 7", True), ("I NOT BETWEEN 1 AND 7", False), ("NI BETWEEN 1 AND 7", False),
    ("NI NOT BETWEEN 1 AND 7", True), ("I IN (1, 7)", True), ("I IN (1, '7')", True), ("NI IN (1, 7)", False),
    ("I NOT IN (1, NULL)", True), ("S IN ('a', 1)", False), ("NI IS NULL", True), ("I IS NOT NULL", True),
    ("NI IS DISTINCT FROM 1", True), ("NI IS DISTINCT FROM NI", False), ("I IS NOT DISTINCT FROM 7", True),
    ("NA IS DISTINCT FROM A", True), ("NULL IS NULL", True),
    ("S LIKE 'Hel%'", True), ("S LIKE 'hel%'", False), ("S LIKE '_ello, W%'", True), ("NS LIKE '%'", False),
    ("'a%b' LIKE 'a!%b' ESCAPE '!'", True), ("'axb' LIKE 'a!%b' ESCAPE '!'", False), ("S NOT LIKE '%x'", True),
    # ---- logic: three-valued
    ("NB AND FALSE", False), ("NB OR TRUE", True), ("NB AND TRUE", None), ("NOT NB", None), ("B AND I = 7", True),
    # ---- parts
    ("A[1]", 3), ("A[-1]", 3), ("A[2]", None), ("A[0]", None), ("A[9]", None), ("NA[1]", None), ("M['a']", 1),
    ("M['x']", None), ("R->X", 1), ("NR->X", None), ("ARRAY[1, 2.5]", [Decimal("1.0"), Decimal("2.5")]),
    ("MAP('a':=1, 'b':=2E0)", {"a": 1.0, "b": 2.0}), ("STRUCT(F:=I, G:=NULL)->F", 7),
    # ---- choice
    ("CASE WHEN NI = 1 THEN 'a' ELSE 'b' END", "b"), ("CASE I WHEN 7 THEN 1 WHEN 8 THEN 2.5 END", Decimal("1.0")),
    ("CASE WHEN FALSE THEN 1 END", None), ("CASE WHEN NB THEN 1 WHEN TRUE THEN 2 END", 2),
    # ---- casts
    ("CAST('12' AS INT)", 12), ("CAST(' 12 ' AS BIGINT)", 12), ("CAST('x' AS INT)", None), ("CAST(3.9E0 AS INT)", 3),
    ("CAST(1E20 AS BIGINT)", LONG_MAX), ("CAST(4294967296 AS INT)", 0), ("CAST(12.5 AS INT)", 12),
    ("CAST('yes' AS BOOLEAN)", True), ("CAST('1' AS BOOLEAN)", False), ("CAST(1.25 AS DECIMAL(3, 1))", Decimal("1.3")),
    ("CAST(123.4 AS DECIMAL(3, 1))", None), ("CAST(I AS STRING)", "7"), ("CAST(1E7 AS STRING)", "1.0E7"),
    ("CAST(E AS STRING)", "12.50"), ("CAST(B AS STRING)", "true"), ("CAST(MOMENT AS STRING)", "2026-11-18T05:10:30.123"),
    ("CAST(CLOCK AS STRING)", "05:10:30"), ("CAST(DAY AS STRING)", "2026-11-18"), ("CAST(A AS STRING)", "[3, null, 1, 3]"),
    ("CAST(M AS STRING)", "{a=1, b=2}"), ("CAST(R AS STRING)", "Struct{X=1,Y=y}"),
    ("CAST('2026' AS TIMESTAMP)", datetime(2026, 1, 1, tzinfo=UTC)), ("CAST('2026-02' AS DATE)", date(2026, 2, 1)),
    ("CAST('2026-11-18T05:10+01:00' AS TIMESTAMP)", datetime(2026, 11, 18, 4, 10, tzinfo=UTC)),
    ("CAST('05:10' AS TIME)", time(5, 10)), ("CAST('no' AS TIME)", None), ("CAST(MOMENT AS DATE)", date(2026, 11, 18)),
    ("CAST(MOMENT AS TIME)", time(5, 10, 30, 123000)), ("CAST(DAY AS TIMESTAMP)", datetime(2026, 11, 18, tzinfo=UTC)),
    ("CAST('AQI=' AS BYTES)", b"\x01\x02"), ("CAST(A AS ARRAY<STRING>)", ["3", None, "1", "3"]),
    ("CAST(M AS MAP<STRING, DOUBLE>)", {"a": 1.0, "b": 2.0}),
    ("CAST(R AS STRUCT<X BIGINT, Z INT>)", {"X": 1, "Z": None}), ("CAST(NR AS STRUCT<X BIGINT>)", None),
    ("CAST(NULL AS INT)", None), ("CAST(NS AS INT)", None),
    ("MOMENT AT TIME ZONE 'Europe/Berlin'", datetime(2026, 11, 18, 6, 10, 30, 123000, tzinfo=UTC)),
]  # fmt: skip

CASES: dict[str, list[tuple[str, Any]]] = {
    # ---- numbers
    "ABS": [("ABS(-5)", 5), ("ABS(-2147483648)", INT_MIN), ("ABS(-1.5)", Decimal("1.5")), ("ABS(NL)", None)],
    "ACOS": [("ACOS(1)", 0.0), ("ACOS(2)", math.nan), ("ACOS(ND)", None)],
    "ASIN": [("ASIN(0)", 0.0), ("ASIN(2)", math.nan), ("ASIN(ND)", None)],
    "ATAN": [("ATAN(1)", math.pi / 4), ("ATAN(ND)", None)],
    "ATAN2": [("ATAN2(1, 1)", math.pi / 4), ("ATAN2(0, -1)", math.pi), ("ATAN2(1, ND)", None)],
    "COS": [("COS(0)", 1.0), ("COS(ND)", None)],
    "COSH": [("COSH(0)", 1.0), ("COSH(1000)", math.inf), ("COSH(ND)", None)],
    "COT": [("COT(0)", math.inf), ("COT(1)", 0.6420926159343306), ("COT(ND)", None)],
    "SIN": [("SIN(0)", 0.0), ("SIN(ND)", None)],
    "SINH": [("SINH(0)", 0.0), ("SINH(-1000)", -math.inf), ("SINH(ND)", None)],
    "TAN": [("TAN(0)", 0.0), ("TAN(ND)", None)],
    "TANH": [("TANH(0)", 0.0), ("TANH(1000)", 1.0), ("TANH(ND)", None)],
    "CBRT": [("CBRT(-27)", -3.0), ("CBRT(ND)", None)],
    "DEGREES": [("DEGREES(PI())", 180.0), ("DEGREES(ND)", None)],
    "RADIANS": [("RADIANS(180)", math.pi), ("RADIANS(ND)", None)],
    "EXP": [("EXP(0)", 1.0), ("EXP(1000)", math.inf), ("EXP(ND)", None)],
    "SQRT": [("SQRT(9)", 3.0), ("SQRT(-1)", math.nan), ("SQRT(ND)", None)],
    "LN": [("LN(1)", 0.0), ("LN(0)", -math.inf), ("LN(-1)", math.nan), ("LN(ND)", None)],
    "LOG": [("LOG(1)", 0.0), ("LOG(2, 8)", 3.0), ("LOG(1, 8)", math.nan), ("LOG(-2, 8)", math.nan), ("LOG(2, ND)", None)],
    "POWER": [("POWER(2, 10)", 1024.0), ("POWER(10, 400)", math.inf), ("POWER(2, NI)", None)],
    "PI": [("PI()", math.pi)],
    "CEIL": [("CEIL(1.2E0)", 2.0), ("CEIL(-1.5)", Decimal("-1.0")), ("CEIL(7)", 7), ("CEIL(NI)", None)],
    "FLOOR": [("FLOOR(-1.2E0)", -2.0), ("FLOOR(E)", Decimal("12.00")), ("FLOOR(NI)", None)],
    "ROUND": [
        ("ROUND(-1.5E0)", -1), ("ROUND(1.5E0)", 2), ("ROUND(E)", Decimal(13)), ("ROUND(1.255, 2)", Decimal("1.260")),
        ("ROUND(1250, -2)", 1300), ("ROUND(1.005E0, 2)", 1.01), ("ROUND(ND)", None), ("ROUND(D, NI)", None),
    ],
    "TRUNC": [
        ("TRUNC(-1.9E0)", -1), ("TRUNC(E)", Decimal(12)), ("TRUNC(1.29, 1)", Decimal("1.20")), ("TRUNC(ND)", None),
    ],
    "SIGN": [("SIGN(-5)", -1), ("SIGN(0E0)", 0), ("SIGN(L)", 1), ("SIGN(NL)", None)],
    "GENERATE_SERIES": [
        ("GENERATE_SERIES(1, 3)", [1, 2, 3]), ("GENERATE_SERIES(3, 1)", [3, 2, 1]), ("GENERATE_SERIES(1, 6, 2)", [1, 3, 5]),
        ("GENERATE_SERIES(1, 3, 0)", None), ("GENERATE_SERIES(1, 3, -1)", None), ("GENERATE_SERIES(L, 71)", [70, 71]),
        ("GENERATE_SERIES(NI, 3)", None),
    ],
    "GEO_DISTANCE": [
        ("GEO_DISTANCE(50.0755, 14.4378, -34.6037, -58.3816)", 11812.137659405807),
        ("GEO_DISTANCE(50.0755, 14.4378, -34.6037, -58.3816, 'MI')", 7340.174696843132),
        ("GEO_DISTANCE(0, 0, 0, 1, 'km')", 111.19492664455873), ("GEO_DISTANCE(0, 0, 0, 1, 'miles')", 69.09758508645551),
        ("GEO_DISTANCE(0, 0, 0, 1, 'FURLONG')", None), ("GEO_DISTANCE(0, 0, 0, 1, S)", None), ("GEO_DISTANCE(0, 181, 0, 1)", None),
        ("GEO_DISTANCE(91, 0, 0, 0)", None), ("GEO_DISTANCE(ND, 0, 0, 0)", None),
    ],
    "RANDOM": [("RANDOM()", Anything(float))],
    # ---- choices
    "COALESCE": [("COALESCE(NI, 5)", 5), ("COALESCE(NI, NL, 5)", 5), ("COALESCE(NS, '5')", "5"), ("COALESCE(NI)", None)],
    "IFNULL": [("IFNULL(NI, 3)", 3), ("IFNULL(I, 3)", 7), ("IFNULL(NI, NI)", None)],
    "NULLIF": [("NULLIF(I, 7)", None), ("NULLIF(I, 8)", 7), ("NULLIF(A, A)", None), ("NULLIF(I, NI)", 7)],
    "GREATEST": [("GREATEST(1, NI, 3)", 3), ("GREATEST(1, 2.5)", Decimal("2.5")), ("GREATEST(NI, NI)", None)],
    "LEAST": [("LEAST(5, 2)", 2), ("LEAST('b', 'a')", "a"), ("LEAST(NI, 2)", 2)],
    "AS_VALUE": [("AS_VALUE(I)", 7), ("AS_VALUE(NI)", None)],
    "ELT": [("ELT(2, 'do', 're')", "re"), ("ELT(5, 'do', 're')", None), ("ELT(0, 'do')", None), ("ELT(NI, 'do')", None)],
    "FIELD": [("FIELD('b', 'a', 'b')", 2), ("FIELD('x', 'a')", 0), ("FIELD(NS, 'a')", 0)],
    # ---- lists
    "ARRAY_CONCAT": [
        ("ARRAY_CONCAT(A, ARRAY[9])", [3, None, 1, 3, 9]), ("ARRAY_CONCAT(NA, ARRAY[9])", [9]), ("ARRAY_CONCAT(NA, NA)", None),
    ],
    "ARRAY_CONTAINS": [
        ("ARRAY_CONTAINS(A, 3)", True), ("ARRAY_CONTAINS(A, NULL)", True), ("ARRAY_CONTAINS(A, 9)", False),
        ("ARRAY_CONTAINS(NA, 1)", False),
    ],
    "ARRAY_DISTINCT": [("ARRAY_DISTINCT(A)", [3, None, 1]), ("ARRAY_DISTINCT(NA)", None)],
    "ARRAY_EXCEPT": [("ARRAY_EXCEPT(A, ARRAY[3])", [None, 1]), ("ARRAY_EXCEPT(A, NA)", None)],
    "ARRAY_INTERSECT": [("ARRAY_INTERSECT(A, ARRAY[1, 3, 5])", [3, 1]), ("ARRAY_INTERSECT(NA, A)", None)],
    "ARRAY_UNION": [("ARRAY_UNION(A, ARRAY[5, 1])", [3, None, 1, 5]), ("ARRAY_UNION(A, NA)", None)],
    "ARRAY_JOIN": [("ARRAY_JOIN(A)", "3,null,1,3"), ("ARRAY_JOIN(T, '; ')", "b; a; null"), ("ARRAY_JOIN(NA)", None)],
    "ARRAY_LENGTH": [("ARRAY_LENGTH(A)", 4), ("ARRAY_LENGTH(NA)", None)],
    "ARRAY_MAX": [("ARRAY_MAX(A)", 3), ("ARRAY_MAX(T)", "b"), ("ARRAY_MAX(NA)", None)],
    "ARRAY_MIN": [("ARRAY_MIN(A)", 1), ("ARRAY_MIN(NA)", None)],
    "ARRAY_REMOVE": [
        ("ARRAY_REMOVE(A, 3)", [None, 1]), ("ARRAY_REMOVE(A, NULL)", [3, 1, 3]), ("ARRAY_REMOVE(NA, 3)", None),
    ],
    "ARRAY_SORT": [
        ("ARRAY_SORT(A)", [1, 3, 3, None]), ("ARRAY_SORT(A, 'DESC')", [3, 3, 1, None]), ("ARRAY_SORT(A, 'x')", None),
        ("ARRAY_SORT(NA)", None),
    ],
    "SLICE": [
        ("SLICE(A, 2, 3)", [None, 1]), ("SLICE(A, NULL, 1)", [3]), ("SLICE(A, 3, NULL)", [1, 3]), ("SLICE(A, 9, 10)", None),
        ("SLICE(NA, 1, 1)", None),
    ],
    # ---- maps
    "AS_MAP": [
        ("AS_MAP(ARRAY['a', 'b'], ARRAY[1])", {"a": 1, "b": None}), ("AS_MAP(ARRAY['a', 'a'], ARRAY[1, 2])", {"a": 2}),
        ("AS_MAP(NT, A)", None),
    ],
    "MAP_KEYS": [("MAP_KEYS(M)", ["a", "b"]), ("MAP_KEYS(NM)", None)],
    "MAP_VALUES": [("MAP_VALUES(M)", [1, 2]), ("MAP_VALUES(NM)", None)],
    "MAP_UNION": [
        ("MAP_UNION(M, MAP('b':=9))", {"a": 1, "b": 9}), ("MAP_UNION(M, NM)", {"a": 1, "b": 2}), ("MAP_UNION(NM, NM)", None),
    ],
    "ENTRIES": [
        ("ENTRIES(M, TRUE)", [{"K": "a", "V": 1}, {"K": "b", "V": 2}]), ("ENTRIES(NM, TRUE)", None),
    ],
    # ---- lambdas
    "FILTER": [
        ("FILTER(A, x => x > 1)", [3, 3]), ("FILTER(M, (k, v) => v > 1)", {"b": 2}), ("FILTER(A, x => NOT (x = 3))", [None, 1]),
        ("FILTER(NA, x => x > 1)", None),
    ],
    "TRANSFORM": [
        ("TRANSFORM(A, x => x * I)", [21, None, 7, 21]),
        ("TRANSFORM(M, (k, v) => UCASE(k), (k, v) => v + 1)", {"A": 2, "B": 3}),
        ("TRANSFORM(M, (k, v) => 'x', (k, v) => v)", None), ("TRANSFORM(NA, x => x)", None),
        ("TRANSFORM(A, x => TRANSFORM(T, y => y))[1]", ["b", "a", None]),
    ],
    "REDUCE": [
        ("REDUCE(ARRAY[1, 2, 3], 10, (s, x) => s + x)", 16), ("REDUCE(M, 0, (s, k, v) => s + v)", 3),
        ("REDUCE(NA, 5, (s, x) => s + x)", 5), ("REDUCE(A, NI, (s, x) => s + x)", None),
    ],
    # ---- texts
    "CHR": [("CHR(65)", "A"), ("CHR('\\u00df')", "ß"), ("CHR(128512)", "😀"), ("CHR(-1)", None), ("CHR(NI)", None)],
    "CONCAT": [("CONCAT('a', NS, 'b')", "ab"), ("CONCAT(Z, Z)", b"\x01\x02\x03\x04\x01\x02\x03\x04")],
    "CONCAT_WS": [("CONCAT_WS(', ', 'a', NS, 'b')", "a, b"), ("CONCAT_WS(NS, 'a', 'b')", None)],
    "INITCAP": [
        ("INITCAP('a rIVER in prague')", "A River In Prague"), ("INITCAP('  leading and  two ')", "Leading And  Two "),
        ("INITCAP('a-b c_d')", "A-b C_d"), ("INITCAP(' ')", ""), ("INITCAP(NS)", None),
    ],
    "INSTR": [
        ("INSTR('banana bandana', 'an')", 2), ("INSTR('banana bandana', 'an', 5)", 9),
        ("INSTR('banana bandana', 'an', 3, 3)", 12), ("INSTR('banana bandana', 'an', -4)", 9), ("INSTR('a', 'x')", 0),
        ("INSTR(NS, 'x')", 0),
    ],
    "LCASE": [("LCASE('ÄB')", "äb"), ("LCASE(NS)", None)],
    "UCASE": [("UCASE('äb')", "ÄB"), ("UCASE(NS)", None)],
    "LEN": [("LEN('a😀')", 3), ("LEN(Z)", 4), ("LEN(NS)", None)],
    "LPAD": [
        ("LPAD('a', 3, 'xy')", "xya"), ("LPAD('abc', 2, 'x')", "ab"), ("LPAD('a', 3, '')", None), ("LPAD(NS, 3, 'x')", None),
        ("LPAD(Z, 6, Z)", b"\x01\x02\x01\x02\x03\x04"), ("LPAD(Z, 2, Z)", b"\x01\x02"), ("LPAD(Z, -1, Z)", None),
        ("LPAD(Z, 6, TO_BYTES('', 'utf8'))", None), ("LPAD(NZ, 6, Z)", None),
    ],
    "RPAD": [
        ("RPAD('a', 3, 'xy')", "axy"), ("RPAD('a', -1, 'x')", None), ("RPAD(NS, 3, 'x')", None),
        ("RPAD(Z, 6, Z)", b"\x01\x02\x03\x04\x01\x02"), ("RPAD(Z, 2, Z)", b"\x01\x02"), ("RPAD(Z, 6, NZ)", None),
    ],
    "MASK": [("MASK('Gate B7, 9:05')", "Xxxx-Xn--n-nn"), ("MASK('aB1', '*', NULL, '1', '2')", "a*1"), ("MASK(NS)", None)],
    "MASK_LEFT": [("MASK_LEFT('Gate B7', 6)", "Xxxx-X7"), ("MASK_LEFT('a', -1)", None), ("MASK_LEFT(NS, 1)", None)],
    "MASK_RIGHT": [("MASK_RIGHT('Gate B7', 3)", "Gate-Xn"), ("MASK_RIGHT(NS, 1)", None)],
    "MASK_KEEP_LEFT": [("MASK_KEEP_LEFT('Gate B7', 2)", "Gaxx-Xn"), ("MASK_KEEP_LEFT(NS, 1)", None)],
    "MASK_KEEP_RIGHT": [("MASK_KEEP_RIGHT('Gate B7', 2)", "Xxxx-B7"), ("MASK_KEEP_RIGHT(NS, 1)", None)],
    "MD5": [("MD5('a')", "0cc175b9c0f1b6a831c399e269772661"), ("MD5(NS)", None)],
    "REPLACE": [("REPLACE('aa', 'a', 'b')", "bb"), ("REPLACE('ab', '', '-')", "-a-b-"), ("REPLACE(NS, 'a', 'b')", None)],
    "SPLIT": [
        ("SPLIT('a.b.', '.')", ["a", "b", ""]), ("SPLIT('ab', '')", ["a", "b"]), ("SPLIT(Z, CAST('Ag==' AS BYTES))", [b"\x01", b"\x03\x04"]),
        ("SPLIT(NS, '.')", None),
    ],
    "SPLIT_TO_MAP": [
        ("SPLIT_TO_MAP('a=1;b=2;c', ';', '=')", {"a": "1", "b": "2"}), ("SPLIT_TO_MAP('a=1', '=', '=')", None),
        ("SPLIT_TO_MAP(NS, ';', '=')", None),
    ],
    "SUBSTRING": [
        ("SUBSTRING('castle', 4)", "tle"), ("SUBSTRING('castle', -3)", "tle"), ("SUBSTRING('castle', -9, 2)", "ca"),
        ("SUBSTRING('castle', 0, 3)", "cas"), ("SUBSTRING(Z, 2, 1)", b"\x02"), ("SUBSTRING(NS, 1)", None),
    ],
    "TRIM": [("TRIM(' \t a ')", "a"), ("TRIM(NS)", None)],
    # ---- patterns
    "REGEXP_EXTRACT": [
        ("REGEXP_EXTRACT('([a-z]+)=([0-9]+)', 'at x=40', 2)", "40"), ("REGEXP_EXTRACT('[a-z]+', '12')", None),
        ("REGEXP_EXTRACT('a', 'a', 3)", None), ("REGEXP_EXTRACT('a', NS)", None),
    ],
    "REGEXP_EXTRACT_ALL": [
        ("REGEXP_EXTRACT_ALL('[a-z]', 'a1b')", ["a", "b"]), ("REGEXP_EXTRACT_ALL('x', 'a')", []), ("REGEXP_EXTRACT_ALL('a', NS)", None),
    ],
    "REGEXP_REPLACE": [
        ("REGEXP_REPLACE('a1b2', '[0-9]', '#')", "a#b#"), ("REGEXP_REPLACE('ab', '(a)(b)', '$2$1')", "ba"), ("REGEXP_REPLACE(NS, 'a', 'b')", None),
    ],
    "REGEXP_SPLIT_TO_ARRAY": [("REGEXP_SPLIT_TO_ARRAY('a1b2', '[0-9]')", ["a", "b", ""]), ("REGEXP_SPLIT_TO_ARRAY(NS, 'a')", None)],
    # ---- JSON
    "EXTRACTJSONFIELD": [
        ("EXTRACTJSONFIELD('{\"a\":{\"b\":[1,\"x\"]}}', '$.a.b[1]')", "x"), ("EXTRACTJSONFIELD('{\"a\":{\"b\":1}}', '$.a')", '{"b":1}'),
        ("EXTRACTJSONFIELD('{\"a\":null}', '$.a')", "null"), ("EXTRACTJSONFIELD('{', '$.a')", None), ("EXTRACTJSONFIELD(NS, '$.a')", None),
    ],
    "IS_JSON_STRING": [("IS_JSON_STRING('[1]')", True), ("IS_JSON_STRING('')", False), ("IS_JSON_STRING('01')", False), ("IS_JSON_STRING(NS)", False)],
    "JSON_ARRAY_CONTAINS": [
        ("JSON_ARRAY_CONTAINS('[1, 2]', 2)", True), ("JSON_ARRAY_CONTAINS('{}', 2)", False), ("JSON_ARRAY_CONTAINS(NS, 2)", False),
    ],
    "JSON_ARRAY_LENGTH": [("JSON_ARRAY_LENGTH('[1, 2]')", 2), ("JSON_ARRAY_LENGTH('{}')", None), ("JSON_ARRAY_LENGTH(NS)", None)],
    "JSON_CONCAT": [
        ("JSON_CONCAT('{\"x\":7,\"y\":8}', '{\"x\":9}')", '{"x":9,"y":8}'), ("JSON_CONCAT('[5]', 'true')", "[5,true]"), ("JSON_CONCAT('[1]', NS)", None),
    ],
    "JSON_ITEMS": [("JSON_ITEMS('[1, {\"a\":2}]')", ["1", '{"a":2}']), ("JSON_ITEMS('1')", None), ("JSON_ITEMS(NS)", None)],
    "JSON_KEYS": [("JSON_KEYS('{\"a\":1,\"b\":2}')", ["a", "b"]), ("JSON_KEYS('[]')", None), ("JSON_KEYS(NS)", None)],
    "JSON_RECORDS": [("JSON_RECORDS('{\"a\":1}')", {"a": "1"}), ("JSON_RECORDS('[]')", None), ("JSON_RECORDS(NS)", None)],
    "TO_JSON_STRING": [
        ("TO_JSON_STRING(R)", '{"X":1,"Y":"y"}'), ("TO_JSON_STRING(A)", "[3,null,1,3]"), ("TO_JSON_STRING(NI)", "null"), ("TO_JSON_STRING(DAY)", '"2026-11-18"'),
    ],
    # ---- bytes
    "TO_BYTES": [("TO_BYTES('ab', 'utf8')", b"ab"), ("TO_BYTES('0x0aff', 'hex')", b"\x0a\xff"), ("TO_BYTES('zz', 'hex')", None), ("TO_BYTES(NS, 'hex')", None)],
    "FROM_BYTES": [("FROM_BYTES(Z, 'hex')", "01020304"), ("FROM_BYTES(Z, 'base64')", "AQIDBA=="), ("FROM_BYTES(NZ, 'hex')", None)],
    "ENCODE": [("ENCODE('ab', 'utf8', 'hex')", "6162"), ("ENCODE('ab', 'utf8', 'x')", None), ("ENCODE(NS, 'utf8', 'hex')", None)],
    "BIGINT_FROM_BYTES": [("BIGINT_FROM_BYTES(CAST('AAAAAAAAAAc=' AS BYTES))", 7), ("BIGINT_FROM_BYTES(Z)", None), ("BIGINT_FROM_BYTES(NZ)", None)],
    "INT_FROM_BYTES": [("INT_FROM_BYTES(Z)", 0x01020304), ("INT_FROM_BYTES(Z, 'LITTLE_ENDIAN')", 0x04030201), ("INT_FROM_BYTES(NZ)", None)],
    "DOUBLE_FROM_BYTES": [("DOUBLE_FROM_BYTES(CAST('P/gAAAAAAAA=' AS BYTES))", 1.5), ("DOUBLE_FROM_BYTES(NZ)", None)],
    "UUID": [("UUID()", Anything(str)), ("UUID(Z)", None), ("UUID(NZ)", None)],
    # ---- dates
    "CONVERT_TZ": [
        ("CONVERT_TZ(MOMENT, 'UTC', 'America/New_York')", datetime(2026, 11, 18, 0, 10, 30, 123000, tzinfo=UTC)), ("CONVERT_TZ(MOMENT, 'x', 'UTC')", None),
        ("CONVERT_TZ(NMOMENT, 'UTC', 'UTC')", None),
    ],
    "DATEADD": [("DATEADD(DAYS, 3, DAY)", date(2026, 11, 21)), ("DATEADD(HOURS, 30, DAY)", date(2026, 11, 19)), ("DATEADD(DAYS, 1, NDAY)", None)],
    "DATESUB": [("DATESUB(DAYS, 18, DAY)", date(2026, 10, 31)), ("DATESUB(DAYS, NI, DAY)", None)],
    "TIMEADD": [("TIMEADD(HOURS, 20, CLOCK)", time(1, 10, 30)), ("TIMEADD(HOURS, 1, NCLOCK)", None)],
    "TIMESUB": [("TIMESUB(MINUTES, 11, CLOCK)", time(4, 59, 30)), ("TIMESUB(HOURS, 1, NCLOCK)", None)],
    "TIMESTAMPADD": [("TIMESTAMPADD(DAYS, 1, MOMENT)", datetime(2026, 11, 19, 5, 10, 30, 123000, tzinfo=UTC)), ("TIMESTAMPADD(DAYS, 1, NMOMENT)", None)],
    "TIMESTAMPSUB": [("TIMESTAMPSUB(MILLISECONDS, 123, MOMENT)", datetime(2026, 11, 18, 5, 10, 30, tzinfo=UTC)), ("TIMESTAMPSUB(DAYS, 1, NMOMENT)", None)],
    "FORMAT_DATE": [("FORMAT_DATE(DAY, 'dd.MM.yyyy')", "18.11.2026"), ("FORMAT_DATE(NDAY, 'dd')", None), ("FORMAT_DATE(DAY, S)", None)],
    "FORMAT_TIME": [("FORMAT_TIME(CLOCK, 'HH_mm')", "05_10"), ("FORMAT_TIME(NCLOCK, 'HH')", None), ("FORMAT_TIME(CLOCK, S)", None)],
    "FORMAT_TIMESTAMP": [
        ("FORMAT_TIMESTAMP(MOMENT, 'HH:mm')", "05:10"), ("FORMAT_TIMESTAMP(MOMENT, 'HH:mm', 'Europe/Berlin')", "06:10"), ("FORMAT_TIMESTAMP(NMOMENT, 'HH')", None),
        ("FORMAT_TIMESTAMP(MOMENT, S)", None), ("FORMAT_TIMESTAMP(MOMENT, 'HH', 'Nowhere/Land')", None),
    ],
    "PARSE_DATE": [("PARSE_DATE('2021-2-30', 'yyyy-M-d')", date(2021, 3, 2)), ("PARSE_DATE('x', 'yyyy')", None), ("PARSE_DATE(NS, 'yyyy')", None), ("PARSE_DATE('2021-02-03 10', CONCAT('yyyy-MM-dd', ' HH'))", None), ("PARSE_DATE('2021-02-03 10', 'yyyy-MM-dd')", None), ("PARSE_DATE('2021', S)", None)],
    "PARSE_TIME": [("PARSE_TIME('5:10', 'H:mm')", time(5, 10)), ("PARSE_TIME('x', 'H')", None), ("PARSE_TIME(NS, 'H')", None)],
    "PARSE_TIMESTAMP": [
        ("PARSE_TIMESTAMP('2026-01-02', 'yyyy-MM-dd')", datetime(2026, 1, 2, tzinfo=UTC)),
        ("PARSE_TIMESTAMP('2026-01-02', 'yyyy-MM-dd', 'Europe/Berlin')", datetime(2026, 1, 1, 23, tzinfo=UTC)), ("PARSE_TIMESTAMP(NS, 'yyyy')", None),
    ],
    "FROM_DAYS": [("FROM_DAYS(1)", date(1970, 1, 2)), ("FROM_DAYS(NI)", None)],
    "FROM_UNIXTIME": [("FROM_UNIXTIME(1000)", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), ("FROM_UNIXTIME(NL)", None)],
    "UNIX_DATE": [("UNIX_DATE(DAY)", 20775), ("UNIX_DATE()", 20775), ("UNIX_DATE(NDAY)", None)],
    "UNIX_TIMESTAMP": [("UNIX_TIMESTAMP(MOMENT)", 1794978630123), ("UNIX_TIMESTAMP()", 1_794_978_630_999), ("UNIX_TIMESTAMP(NMOMENT)", None)],
    "DATETOSTRING": [("DATETOSTRING(20775, 'yyyy-MM-dd')", "2026-11-18"), ("DATETOSTRING(NI, 'yyyy')", None)],
    "STRINGTODATE": [("STRINGTODATE('2026-11-18', 'yyyy-MM-dd')", 20775), ("STRINGTODATE(NS, 'yyyy')", None)],
    "TIMESTAMPTOSTRING": [
        ("TIMESTAMPTOSTRING(1000, 'HH:mm:ss')", "00:00:01"), ("TIMESTAMPTOSTRING(1000, 'HH', 'Europe/Berlin')", "01"), ("TIMESTAMPTOSTRING(NL, 'HH')", None),
    ],
    "STRINGTOTIMESTAMP": [
        ("STRINGTOTIMESTAMP('00:00:01', 'HH:mm:ss')", 1000), ("STRINGTOTIMESTAMP('01', 'HH', 'Europe/Berlin')", 0), ("STRINGTOTIMESTAMP(NS, 'HH')", None),
    ],
    # ---- addresses
    "URL_DECODE_PARAM": [("URL_DECODE_PARAM('a+b%26')", "a b&"), ("URL_DECODE_PARAM(NS)", None)],
    "URL_ENCODE_PARAM": [("URL_ENCODE_PARAM('a b&')", "a+b%26"), ("URL_ENCODE_PARAM(NS)", None)],
    "URL_EXTRACT_FRAGMENT": [("URL_EXTRACT_FRAGMENT('http://h/p#f%20g')", "f g"), ("URL_EXTRACT_FRAGMENT(NS)", None), ("URL_EXTRACT_FRAGMENT('http://h/#a#b')", None)],
    "URL_EXTRACT_HOST": [("URL_EXTRACT_HOST('http://u@h:80/p')", "h"), ("URL_EXTRACT_HOST(NS)", None), ("URL_EXTRACT_HOST('http://[')", None), ("URL_EXTRACT_HOST('ht tp://x')", None), ("URL_EXTRACT_HOST('')", None), ("URL_EXTRACT_HOST('mailto:a@b')", None), ("URL_EXTRACT_HOST('http://h_x/')", None)],
    "URL_EXTRACT_PARAMETER": [("URL_EXTRACT_PARAMETER('http://h/?a=1&b=x%20y', 'b')", "x y"), ("URL_EXTRACT_PARAMETER('http://h/', 'b')", None), ("URL_EXTRACT_PARAMETER('http://h/?a&b=1', 'a')", ""), ("URL_EXTRACT_PARAMETER('http://h/?a=1', 'A')", None), ("URL_EXTRACT_PARAMETER('http://h/ x?a=1', 'a')", None)],
    "URL_EXTRACT_PATH": [("URL_EXTRACT_PATH('http://h/p/q?x')", "/p/q"), ("URL_EXTRACT_PATH(NS)", None), ("URL_EXTRACT_PATH('http://h/%zz')", None), ("URL_EXTRACT_PATH('http://h/a b')", None)],
    "URL_EXTRACT_PORT": [("URL_EXTRACT_PORT('http://h:80/')", 80), ("URL_EXTRACT_PORT('http://h/')", None), ("URL_EXTRACT_PORT(NS)", None), ("URL_EXTRACT_PORT('http://h:x/')", None)],
    "URL_EXTRACT_PROTOCOL": [("URL_EXTRACT_PROTOCOL('http://h/')", "http"), ("URL_EXTRACT_PROTOCOL(NS)", None), ("URL_EXTRACT_PROTOCOL('1http://h')", None), ("URL_EXTRACT_PROTOCOL('//h/p')", None)],
    "URL_EXTRACT_QUERY": [("URL_EXTRACT_QUERY('http://h/?a=1%202')", "a=1 2"), ("URL_EXTRACT_QUERY(NS)", None), ("URL_EXTRACT_QUERY('http://h/?a=%zz')", None)],
}  # fmt: skip


def every_case() -> list[tuple[str, Any]]:
    return [*OPERATORS, *(case for cases in CASES.values() for case in cases)]
