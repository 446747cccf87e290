"""One setting: its name, type, bounds, default and meaning. Owns parsing and printing; holds no configured value.

Validation, DescribeConfigs and the configuration page all read these objects, so a fact about a setting is stated once.
A plain slots class: the tables hold some four hundred instances and load on every start.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, IntEnum
from math import isinf, isnan, nan
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
"""A parsed value. Lists are tuples, passwords and classes are text, None stands for Kafka's null."""


class OutOfBounds(ValueError):
    """A number beyond what its setting allows."""


class Type(IntEnum):
    """Kafka's types, numbered as DescribeConfigs v3+ numbers them."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Update(Enum):
    """How a broker setting may change while the node runs (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Required(Enum):
    """The default of a setting that has none."""

    REQUIRED = "required"


REQUIRED = Required.REQUIRED


class Differs(NamedTuple):
    """Where our default is not Kafka's: theirs, and why ours is another."""

    kafka_default: Value
    why: str


Check: TypeAlias = Callable[[Value], str | None]
"""Says what is allowed when the value is not, None when it is fine."""

# Type members are looked up once: enum attribute access is slow and every parse asks for them.
BOOLEAN, STRING, INT, SHORT, LONG = Type.BOOLEAN, Type.STRING, Type.INT, Type.SHORT, Type.LONG
DOUBLE, LIST, CLASS, PASSWORD = Type.DOUBLE, Type.LIST, Type.CLASS, Type.PASSWORD
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
READ_ONLY, PER_BROKER, CLUSTER_WIDE = Update.READ_ONLY, Update.PER_BROKER, Update.CLUSTER_WIDE

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
DOUBLE_MAX = 1.7976931348623157e308

_RANGES = {SHORT: (-(1 << 15), (1 << 15) - 1), INT: (-INT_MAX - 1, INT_MAX), LONG: (-LONG_MAX - 1, LONG_MAX)}
_JAVA_BLANKS = "".join(map(chr, range(33)))
"""What String.trim() removes."""


class Property:
    __slots__ = (
        "allow_empty",
        "at_least",
        "at_most",
        "check",
        "default",
        "differs",
        "doc",
        "ignore_case",
        "importance",
        "internal",
        "name",
        "one_of",
        "synonyms",
        "type",
        "update",
    )

    def __init__(
        self,
        name: str,
        type: Type,
        default: Value | Required,
        doc: str,
        importance: Importance = MEDIUM,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        one_of: tuple[str, ...] | None = None,
        ignore_case: bool = False,
        allow_empty: bool = True,
        check: Check | None = None,
        update: Update = READ_ONLY,
        synonyms: tuple[str, ...] = (),
        internal: bool = False,
        differs: Differs | None = None,
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.doc = doc
        self.importance = importance
        self.at_least = at_least
        self.at_most = at_most
        self.one_of = one_of
        self.ignore_case = ignore_case
        self.allow_empty = allow_empty
        self.check = check
        self.update = update
        self.synonyms = synonyms
        self.internal = internal
        self.differs = differs

    def __repr__(self) -> str:
        return f"Property({self.name!r}, {self.type.name}, default={self.default!r})"

    @property
    def sensitive(self) -> bool:
        """Never shown: not in DescribeConfigs, not in an error, not in a log."""
        return self.type is PASSWORD

    @property
    def _has_grammar(self) -> bool:
        """Voters and throttled replicas are lists with a grammar of their own, which may repeat values."""
        return self.check is not None and self.one_of is None

    @property
    def kafka_default(self) -> Value | Required:
        return self.differs.kafka_default if self.differs else self.default

    @property
    def default_text(self) -> str | None:
        return None if self.default is REQUIRED else self.render(self.default)

    def parse(self, text: str) -> Value:
        """The typed value of a text. Raises ValueError naming the setting, the text and what is allowed."""
        value = self._convert(text.strip(_JAVA_BLANKS))
        self.validate(value)
        return value

    def take(self, value: object) -> Value:
        """A value as a program gives it: of its own type, or as text, which is empty for none. Raises as `parse`."""
        if self.default is None and value in (None, ""):
            return None
        if isinstance(value, str):
            return self.parse(value)
        if isinstance(value, bool):
            taken: Value = value if self.type is BOOLEAN else None
        elif isinstance(value, int):
            taken = value if self.type in _RANGES else float(value) if self.type is DOUBLE else None
        elif isinstance(value, float):
            taken = value if self.type is DOUBLE else None
        elif isinstance(value, list | tuple):
            taken = tuple(map(str, value)) if self.type is LIST else None
        else:
            taken = None
        if taken is None:
            raise ValueError(f"{self.name}: {value!r} is not of the type {self.type.name.lower()}")
        self.validate(taken)
        return taken

    def validate(self, value: Value) -> None:
        """Raises ValueError when a value of the right type is not allowed, OutOfBounds if it is too small or big."""
        if isinstance(value, int | float) and self._is_beyond(value):
            raise OutOfBounds(f"{self.name}: {self._shown(value)} is not allowed: allowed is {self.allowed()}")
        problem = self._problem(value)
        if problem is not None:
            raise ValueError(f"{self.name}: {self._shown(value)} is not allowed: {problem}")

    def render(self, value: Value) -> str | None:
        """The text Kafka prints for a value."""
        if value is None:
            return None
        if self.type is PASSWORD:
            return "[hidden]"
        if value is True or value is False:
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if self.type is DOUBLE:
            return java_double(float(value))
        return str(value)

    def allowed(self) -> str:
        """What a value may be, in words. Empty when every value of the type will do."""
        if self.one_of is not None:
            words = ", ".join(self.one_of)
            return f"any of {words}" if self.type is LIST else f"one of {words}"
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least} to {self.at_most}"
        if self.at_least is not None:
            return f"{self.at_least} or more"
        if self.at_most is not None:
            return f"{self.at_most} or less"
        return "" if self.allow_empty else "must not be empty"

    def _shown(self, value: Value) -> str:
        return "[hidden]" if self.type is PASSWORD else repr(self.render(value))

    def _convert(self, text: str) -> Value:
        kind = self.type
        if kind in _RANGES:
            return self._whole_number(text)
        if kind is BOOLEAN:
            lowered = text.lower()
            if lowered in ("true", "false"):
                return lowered == "true"
            raise ValueError(f"{self.name}: {text!r} is not a boolean, allowed: true or false")
        if kind is LIST:
            parts = tuple(part.strip(_JAVA_BLANKS) for part in text.split(",")) if text else ()
            # KIP-1161: what is there twice counts once.
            return parts if self._has_grammar else tuple(dict.fromkeys(parts))
        if kind is DOUBLE:
            return self._fraction(text)
        return text

    def _whole_number(self, text: str) -> int:
        digits = text[1:] if text[:1] in ("+", "-") else text
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError(f"{self.name}: {text!r} is not a whole number {self._expected()}")
        # Twenty digits hold every long; a longer text is out of range and not worth converting.
        value = int(text) if len(digits.lstrip("0")) <= 20 else (1 << 70)
        low, high = _RANGES[self.type]
        if not low <= value <= high:
            raise ValueError(f"{self.name}: {text!r} is too large {self._expected()}")
        return value

    def _fraction(self, text: str) -> float:
        number = text[:-1] if text[-1:] in ("d", "D", "f", "F") else text
        try:
            value = float(number.replace("_", "?"))
        except ValueError:
            value = nan
        if isnan(value):
            raise ValueError(f"{self.name}: {text!r} is not a number {self._expected()}")
        return value

    def _expected(self) -> str:
        words = self.allowed()
        return f"({self.type.name.lower()}), allowed: {words}" if words else f"({self.type.name.lower()})"

    def _is_beyond(self, value: float) -> bool:
        too_small = self.at_least is not None and value < self.at_least
        return too_small or (self.at_most is not None and value > self.at_most)

    def _problem(self, value: Value) -> str | None:
        if value is None:
            return None if self.default is None else f"a value is needed ({self.type.name.lower()})"
        if isinstance(value, tuple):
            return self._list_problem(value) or (self.check(value) if self.check else None)
        if self.one_of is not None and isinstance(value, str) and not self._is_one_of(value):
            return f"allowed is {self.allowed()}"
        if value == "" and not self.allow_empty:
            return "it must not be empty"
        return self.check(value) if self.check else None

    def _is_one_of(self, value: str) -> bool:
        assert self.one_of is not None
        if self.ignore_case:
            return value.lower() in [choice.lower() for choice in self.one_of]
        return value in self.one_of

    def _list_problem(self, values: tuple[str, ...]) -> str | None:
        if not values and not self.allow_empty:
            return f"at least one value is needed{', ' + self.allowed() if self.one_of else ''}"
        if self._has_grammar:
            return None
        if "" in values:
            return "an entry between the commas is empty"
        for value in values:
            if self.one_of is not None and not self._is_one_of(value):
                return f"{value!r} is none of {', '.join(self.one_of)}"
        return None


def table(*parts: Iterable[Property]) -> Mapping[str, Property]:
    """What a room declares: its settings by name."""
    return MappingProxyType({entry.name: entry for part in parts for entry in part})


def closest(name: str, names: Iterable[str], likeness: float = 0.8) -> str | None:
    """The known name that a misspelt one was probably meant to be."""
    import difflib  # noqa: PLC0415 only a mistake pays for it

    found = difflib.get_close_matches(name, list(names), n=1, cutoff=likeness)
    return found[0] if found else None


def java_double(value: float) -> str:
    """Double.toString: plain from 0.001 up to ten million, else one digit, a point and an exponent."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    # The point of repr stands after `whole`; Java's stands after the first digit that is not zero.
    leading_zeros = len(whole + fraction) - len(digits)
    power = int(exponent or 0) + len(whole) - leading_zeros - 1
    digits = digits.rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
