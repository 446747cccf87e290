"""A limit of any kind: a number that is there or not, in the writer's schema and in the reader's."""

from ottla.registry.schemas.json_schema.findings import Findings
from ottla.registry.schemas.json_schema.shapes import Number


def compare(keyword: str, code: str, writer: Number | None, reader: Number | None, findings: Findings) -> None:
    if writer is None and reader is None:
        return
    if writer is None:
        findings.add(f"{code}_ADDED", keyword)
    elif reader is None:
        findings.add(f"{code}_REMOVED", keyword)
    elif writer < reader:
        findings.add(f"{code}_INCREASED", keyword)
    elif writer > reader:
        findings.add(f"{code}_DECREASED", keyword)
