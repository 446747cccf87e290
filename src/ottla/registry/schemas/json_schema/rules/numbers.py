"""Numbers: limits, `multipleOf`, and integers, which are numbers too."""

from decimal import Decimal, InvalidOperation
from typing import Final

from ottla.registry.schemas.json_schema.findings import Findings
from ottla.registry.schemas.json_schema.rules import limits
from ottla.registry.schemas.json_schema.shapes import Number, Numeric


def bounds(writer: Numeric, reader: Numeric, findings: Findings) -> None:
    limits.compare("maximum", "MAXIMUM", writer.maximum, reader.maximum, findings)
    limits.compare("minimum", "MINIMUM", writer.minimum, reader.minimum, findings)
    exclusive = (writer.exclusive_maximum, reader.exclusive_maximum)
    limits.compare("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", *exclusive, findings)
    exclusive = (writer.exclusive_minimum, reader.exclusive_minimum)
    limits.compare("exclusiveMinimum", "EXCLUSIVE_MINIMUM", *exclusive, findings)


def multiples(writer: Numeric, reader: Numeric, findings: Findings) -> None:
    if writer.multiple_of == reader.multiple_of:
        return
    if writer.multiple_of is None:
        code = "MULTIPLE_OF_ADDED"
    elif reader.multiple_of is None:
        code = "MULTIPLE_OF_REMOVED"
    elif _divides(writer.multiple_of, reader.multiple_of):
        code = "MULTIPLE_OF_EXPANDED"
    elif _divides(reader.multiple_of, writer.multiple_of):
        code = "MULTIPLE_OF_REDUCED"
    else:
        code = "MULTIPLE_OF_CHANGED"
    findings.add(code, "multipleOf")


def integers(writer: Numeric, reader: Numeric, findings: Findings) -> None:
    if writer.is_integer != reader.is_integer:
        findings.add("TYPE_EXTENDED" if writer.is_integer else "TYPE_NARROWED")


def _divides(divisor: Number, number: Number) -> bool:
    """Exact also for 0.1, where Confluent's server looks at whole numbers only."""
    try:
        return Decimal(number) % Decimal(divisor) == 0
    except InvalidOperation:  # by zero, or so many digits apart that nobody can tell
        return False


RULES: Final = (bounds, multiples, integers)
