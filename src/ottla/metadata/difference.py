"""The delta between two images: what readers must look at when a snapshot took the place of many records."""

from collections.abc import Mapping
from typing import TypeVar

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage

K = TypeVar("K")
V = TypeVar("V")

_SECURITY = ("acls", "client_quotas", "delegation_tokens", "scram")


def difference(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """A delta whose notes lead from `old` to `new`. It has no records and cannot be applied."""
    delta = MetadataDelta(old)
    _topics(delta, old, new)
    for broker_id in _changed(old.brokers, new.brokers):
        delta.changed_brokers[broker_id] = new.brokers.get(broker_id)
    for controller_id in _changed(old.controllers, new.controllers):
        if controller_id in new.controllers:
            delta.changed_controllers[controller_id] = new.controllers[controller_id]
    delta.changed_configs.update(dict.fromkeys(_changed(old.configs, new.configs)))
    delta.changed_acls.update({acl_id: new.acls.get(acl_id) for acl_id in _changed(old.acls, new.acls)})
    delta.changed_security.update({name: None for name in _SECURITY if getattr(old, name) != getattr(new, name)})
    delta.features_changed = old.features != new.features
    delta.next_producer_id = new.next_producer_id
    return delta


def _topics(delta: MetadataDelta, old: MetadataImage, new: MetadataImage) -> None:
    for topic_id, topic in old.topics_by_id.items():
        if topic_id not in new.topics_by_id:
            delta.deleted_topics[topic_id] = topic
    for topic_id, topic in new.topics_by_id.items():
        before = old.topics_by_id.get(topic_id)
        if before is None:
            delta.created_topics[topic.name] = topic_id
        known = before.partitions if before is not None else {}
        changed = {index: p for index, p in topic.partitions.items() if known.get(index) != p}
        if changed:
            delta.changed_partitions[topic_id] = changed


def _changed(old: Mapping[K, V], new: Mapping[K, V]) -> list[K]:
    """Keys that are gone, new or different, in the order of the mappings."""
    return [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]
