"""What a setting amounts to for one topic, after topic, broker and cluster overrides (KIP-226's order)."""

from typing import Final

from ottla.controller.partitions import Election, ElectionRules, MayLead, default_directory
from ottla.metadata.image import MetadataImage, TopicImage, effective_min_isr
from ottla.metadata.records import DIRECTORY_ASSIGNMENT_LEVEL
from ottla.model.properties import TOPIC, Settings, Value

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
NO_BUMP_ON_SHRINK_LEVEL: Final = 12  # 3.6-IV0


def _value(image: MetadataImage, settings: Settings, topic: str, name: str) -> Value:
    """For configs that have the same name on topic and broker."""
    layers = (image.topic_configs(topic), image.broker_configs(settings.node_id), image.cluster_configs)
    for layer in layers:
        if name in layer:
            return TOPIC[name].parse(layer[name])
    return settings[name]


def allows_unclean_election(image: MetadataImage, settings: Settings, topic: TopicImage) -> bool:
    return bool(_value(image, settings, topic.name, UNCLEAN_ELECTION))


def topic_rules(
    image: MetadataImage,
    settings: Settings,
    topic: TopicImage,
    *,
    may_lead: MayLead,
    election: Election | None = None,
    unclean_replicas: tuple[int, ...] = (),
) -> ElectionRules:
    """`election` is what somebody asked for; without it the topic's own setting decides."""
    if election is None:
        election = Election.UNCLEAN if allows_unclean_election(image, settings, topic) else Election.ONLINE
    min_isr = _value(image, settings, topic.name, "min.insync.replicas")
    assert isinstance(min_isr, int)
    replicas = len(next(iter(topic.partitions.values())).replicas)
    return ElectionRules(
        may_lead=may_lead,
        default_directory=lambda broker_id: default_directory(image, broker_id),
        # A topic with fewer replicas than min.insync.replicas could otherwise never clear its ELR.
        min_isr=effective_min_isr(min_isr, replicas),
        elr_enabled=image.elr_enabled,
        election=election,
        unclean_replicas=unclean_replicas,
        directories_known=image.metadata_version >= DIRECTORY_ASSIGNMENT_LEVEL,
        bump_on_shrink=image.metadata_version < NO_BUMP_ON_SHRINK_LEVEL,
    )
