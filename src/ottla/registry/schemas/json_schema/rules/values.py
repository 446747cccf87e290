"""enum, const, not, and references that lead nowhere."""

from ottla.registry.schemas.json_schema.findings import Findings, Verdict
from ottla.registry.schemas.json_schema.shapes import Choices, Constant, Negation, Unknown, shape_of


def choices(writer: Choices, reader: Choices, findings: Findings) -> None:
    if writer.values == reader.values:
        return
    if reader.values > writer.values:
        findings.add("ENUM_ARRAY_EXTENDED", "enum")
    elif reader.values < writer.values:
        findings.add("ENUM_ARRAY_NARROWED", "enum")
    else:
        findings.add("ENUM_ARRAY_CHANGED", "enum")


def constant(writer: Constant, reader: Constant, findings: Findings) -> None:
    if writer.value != reader.value:
        findings.add("ENUM_ARRAY_CHANGED", "const")


def negation(writer: Negation, reader: Negation, findings: Findings) -> None:
    """What the reader forbids has to be forbidden already: the two change places."""
    forbidden = shape_of(reader.of), shape_of(writer.of)
    findings.all.append(Verdict("not", forbidden, "NOT_TYPE_NARROWED", "NOT_TYPE_EXTENDED"))


def unknown(writer: Unknown, reader: Unknown, findings: Findings) -> None:
    if writer.uri != reader.uri:
        findings.add("TYPE_CHANGED")
