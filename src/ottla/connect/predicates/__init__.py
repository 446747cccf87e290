"""Connect's predicates: whether a transform concerns a record. Each in a file of its own; `base` is what one is."""

from typing import Final

from ottla.connect.plugins import Plugin, PluginType

_PACKAGE: Final = "org.apache.kafka.connect.transforms.predicates"


def _row(name: str, module: str) -> Plugin:
    return Plugin(f"{_PACKAGE}.{name}", PluginType.PREDICATE, f"ottla.connect.predicates.{module}:{name}")


PLUGINS: Final = (
    _row("HasHeaderKey", "has_header_key"),
    _row("RecordIsTombstone", "record_is_tombstone"),
    _row("TopicNameMatches", "topic_name_matches"),
)
