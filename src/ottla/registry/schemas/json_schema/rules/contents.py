"""What `additional…` and `unevaluated…` say of members and items that are not named, and what follows for a model.

A model is open if it allows anything more, closed if it allows nothing more, and partially open between.
"""

from ottla.registry.schemas.json_schema.findings import Findings
from ottla.registry.schemas.json_schema.shapes import Anything, Nothing, Sub, shape_of


def additional(keyword: str, code: str, writer: Sub | None, reader: Sub | None, findings: Findings) -> None:
    """None is nothing said: anything more is allowed."""
    if writer is None and reader is None:
        return
    if _is_closed(writer) != _is_closed(reader):
        findings.add(f"{code}_REMOVED" if _is_closed(reader) else f"{code}_ADDED", keyword)
    elif writer is None:
        findings.add(f"{code}_NARROWED", keyword)
    elif reader is None:
        findings.add(f"{code}_EXTENDED", keyword)
    else:
        findings.inside(keyword, writer, reader)


def unevaluated(keyword: str, code: str, writer: Sub | None, reader: Sub | None, findings: Findings) -> None:
    if _is_closed(writer) != _is_closed(reader):
        findings.add(f"{code}_REMOVED" if _is_closed(reader) else f"{code}_ADDED", keyword)
    elif _is_open(writer) and not _is_open(reader):
        findings.add(f"{code}_NARROWED", keyword)
    elif _is_open(reader) and not _is_open(writer):
        findings.add(f"{code}_EXTENDED", keyword)
    elif writer is not None and reader is not None:
        findings.inside(keyword, writer, reader)


def is_open(more: Sub | None, rest: Sub | None) -> bool:
    """By what `additional…` and `unevaluated…` say."""
    return more is None and _is_open(rest)


def covering(more: Sub | None, rest: Sub | None) -> Sub | None:
    """The schema of what is not named in a partially open model; None if it is closed (or open)."""
    said = rest if more is None else more
    return None if said is None or _is_closed(said) else said


def _is_closed(said: Sub | None) -> bool:
    return said is not None and isinstance(shape_of(said), Nothing)


def _is_open(said: Sub | None) -> bool:
    return said is None or isinstance(shape_of(said), Anything)
