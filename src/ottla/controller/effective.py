"""What a setting amounts to for one topic, after topic, broker and cluster overrides (KIP-226's order)."""

from collections.abc import Callable

from ottla.controller.partitions import ElectionRules
from ottla.metadata.image import MetadataImage, TopicImage
from ottla.model.properties import TOPIC, Settings, Value


def _value(image: MetadataImage, settings: Settings, topic: str, name: str) -> Value:
    """For configs that have the same name on topic and broker."""
    layers = (image.topic_configs(topic), image.broker_configs(settings.node_id), image.cluster_configs)
    for layer in layers:
        if name in layer:
            return TOPIC[name].parse(layer[name])
    return settings[name]


def topic_rules(
    image: MetadataImage,
    settings: Settings,
    topic: TopicImage,
    *,
    may_lead: Callable[[int], bool],
    unclean_replicas: tuple[int, ...] = (),
) -> ElectionRules:
    min_isr = _value(image, settings, topic.name, "min.insync.replicas")
    unclean = _value(image, settings, topic.name, "unclean.leader.election.enable")
    assert isinstance(min_isr, int)
    replicas = max((len(p.replicas) for p in topic.partitions.values()), default=1)
    return ElectionRules(
        may_lead=may_lead,
        # A topic with fewer replicas than min.insync.replicas could otherwise never clear its ELR.
        min_isr=min(min_isr, replicas),
        elr_enabled=image.elr_enabled,
        unclean_allowed=bool(unclean),
        unclean_replicas=unclean_replicas,
    )
