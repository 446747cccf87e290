"""What is said to people may change freely."""

from ottla.registry.schemas.json_schema.findings import Findings
from ottla.registry.schemas.json_schema.shapes import Notes


def compare(writer: Notes, reader: Notes, findings: Findings) -> None:
    if writer.id != reader.id:
        findings.add("ID_CHANGED")
    if writer.title != reader.title:
        findings.add("TITLE_CHANGED")
    if writer.description != reader.description:
        findings.add("DESCRIPTION_CHANGED")
    if writer.default != reader.default:
        findings.add("DEFAULT_CHANGED")
