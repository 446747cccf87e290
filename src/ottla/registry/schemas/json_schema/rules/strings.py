"""Strings: lengths and the pattern."""

from typing import Final

from ottla.registry.schemas.json_schema.findings import Findings
from ottla.registry.schemas.json_schema.rules import limits
from ottla.registry.schemas.json_schema.shapes import Text


def lengths(writer: Text, reader: Text, findings: Findings) -> None:
    limits.compare("maxLength", "MAX_LENGTH", writer.max_length, reader.max_length, findings)
    limits.compare("minLength", "MIN_LENGTH", writer.min_length, reader.min_length, findings)


def pattern(writer: Text, reader: Text, findings: Findings) -> None:
    if writer.pattern == reader.pattern:
        return
    if writer.pattern is None:
        findings.add("PATTERN_ADDED", "pattern")
    elif reader.pattern is None:
        findings.add("PATTERN_REMOVED", "pattern")
    else:
        findings.add("PATTERN_CHANGED", "pattern")


RULES: Final = (lengths, pattern)
