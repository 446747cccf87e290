"""How a new topic keeps its records: RETENTION_MS and CLEANUP_POLICY, and what a table and a window ask for."""

from typing import Final

from ottla.sql import tree as t
from ottla.sql.analysis.properties import Properties
from ottla.sql.analysis.refusals import meant, refuse

RETENTION: Final = "retention.ms"
CLEANUP: Final = "cleanup.policy"
COMPACT: Final = "compact"
_DELETE: Final = "delete"
_FOREVER: Final = -1

TopicSettings = tuple[tuple[str, str], ...]


def topic_settings(
    said: Properties, node: t.CreateSource | t.CreateAs, *, windowed: bool, retention_ms: int | None = None
) -> TopicSettings:
    """`retention_ms`: of the WINDOW. With RETENTION_MS beside it the larger one counts, so that no window is lost."""
    policy = _policy(said, node, windowed=windowed)
    asked = said.number("RETENTION_MS")
    if asked is not None and asked <= 0 and asked != _FOREVER:
        refuse(f"RETENTION_MS is above 0, or -1 for ever, not {asked}", said.place("RETENTION_MS", node))
    if asked is not None and policy == {COMPACT}:
        refuse(
            "RETENTION_MS is for topics that delete what is old, but that of this table keeps the newest record of "
            "each key: leave it out, or say CLEANUP_POLICY='compact,delete'",
            said.place("RETENTION_MS", node),
        )
    found = {CLEANUP: ",".join(sorted(policy))} if policy else {}
    kept = [each for each in (asked, retention_ms) if each is not None]
    if kept:
        found[RETENTION] = str(_FOREVER if _FOREVER in kept else max(kept))
    return tuple(sorted(found.items()))


def _policy(said: Properties, node: t.CreateSource | t.CreateAs, *, windowed: bool) -> set[str]:
    """None of a stream: the broker's. Keys of a window are not written again when it is over: they have to go, too."""
    written = said.text("CLEANUP_POLICY")
    if written is None:
        return set() if node.kind == "STREAM" else {COMPACT, _DELETE} if windowed else {COMPACT}
    policy = {each.strip().lower() for each in written.split(",")}
    for each in sorted(policy - {COMPACT, _DELETE}):
        refuse(f"{each!r} is no CLEANUP_POLICY{meant(each, (COMPACT, _DELETE))}", said.place("CLEANUP_POLICY", node))
    return policy
