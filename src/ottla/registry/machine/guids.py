"""The GUID of a schema: MD5 over text, references, metadata and rules, shown as a UUID."""

import hashlib
from collections.abc import Sequence
from struct import Struct

from ottla.registry.entities import Metadata, Rule, RuleSet
from ottla.registry.schemas.base import Reference

_INT = Struct(">i")


def guid_of(text: str, references: Sequence[Reference], metadata: Metadata | None, rules: RuleSet | None) -> str:
    """Absent members add nothing, and maps and sets go in sorted order, as in Confluent's server."""
    parts = [text.encode("utf-8", "surrogatepass")]
    for reference in references:
        parts += (reference.name.encode(), reference.subject.encode(), _INT.pack(reference.version))
    if metadata is not None:
        parts.append(b"\x01")
        for path, tags in sorted((metadata.tags or {}).items()):
            parts += (path.encode(), *(tag.encode() for tag in sorted(tags)))
        for name, value in sorted((metadata.properties or {}).items()):
            parts += (name.encode(), value.encode())
        parts += [name.encode() for name in sorted(metadata.sensitive or ())]
    if rules is not None:
        parts.append(b"\x01")
        for rule in (*(rules.migration_rules or ()), *(rules.domain_rules or ()), *(rules.encoding_rules or ())):
            parts += _rule(rule)
        parts.append((rules.enable_at or "").encode())
    digest = hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def _rule(rule: Rule) -> list[bytes]:
    params = [part for pair in sorted((rule.params or {}).items()) for part in pair]
    said = (rule.name, rule.doc, rule.kind, rule.mode, rule.type, *sorted(rule.tags or ()), *params, rule.expr)
    words = [word for word in (*said, rule.on_success, rule.on_failure) if word]
    return [*(word.encode() for word in words), *([b"\x01"] if rule.disabled else [])]
