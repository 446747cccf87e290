"""Brokers come, go and come back: heartbeats, fencing, controlled shutdown (KIP-500, KIP-841, KIP-966).

All of it is decided from the image, but for who is alive and how far it has read: `Sessions` knows that.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from ottla.controller.decision import Decision
from ottla.controller.effective import topic_rules
from ottla.controller.partitions import ElectionRules, Wanted, change_partition, eligible_leaders, lead_again
from ottla.controller.sessions import NO_OFFSET, Sessions
from ottla.metadata.image import BrokerRegistration, MetadataImage, PartitionImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

FENCE: Final = 1
UNFENCE: Final = -1


def stale_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is None or broker.epoch != broker_epoch


class _State(Enum):
    FENCED = "leads nothing, is in no ISR"
    UNFENCED = "may lead"
    LEAVING = "hands over what it leads, and waits until the others know"
    GONE = "may stop its process"


def heartbeat(
    image: MetadataImage,
    settings: Settings,
    sessions: Sessions,
    request: "messages.BrokerHeartbeatRequest",
    *,
    next_offset: int,
    now: Millis,
) -> "Decision[messages.BrokerHeartbeatResponse]":
    kind = messages.BrokerHeartbeatResponse
    if stale_epoch(image, request.broker_id, request.broker_epoch):
        return Decision(kind(error_code=Errors.STALE_BROKER_EPOCH))
    broker = image.brokers[request.broker_id]
    sessions.heard(broker.id, broker.epoch, now, request.current_metadata_offset)
    if broker.fenced:
        sessions.not_leaving(broker.id)
    caught_up = request.current_metadata_offset >= sessions.registration_offset(broker)
    state = _next_state(image, settings, sessions, request, caught_up=caught_up)
    records = _transition(image, settings, broker, state)
    if state is _State.LEAVING:
        sessions.shutting_down(broker.id, broker.epoch, next_offset + len(records) - 1, now)
    elif state is _State.GONE:
        sessions.left(broker.id)
    records += _directory_changes(image, settings, broker, request)
    reply = kind(
        is_caught_up=caught_up,
        is_fenced=state in (_State.FENCED, _State.GONE),
        should_shut_down=state is _State.GONE,
    )
    return Decision(reply, tuple(records))


def _next_state(
    image: MetadataImage,
    settings: Settings,
    sessions: Sessions,
    request: "messages.BrokerHeartbeatRequest",
    *,
    caught_up: bool,
) -> _State:
    broker = image.brokers[request.broker_id]
    if broker.fenced:
        if request.want_shut_down:
            return _State.GONE
        return _State.UNFENCED if caught_up and not request.want_fence else _State.FENCED
    leaving_since = sessions.shutdown_offset(broker)
    if leaving_since != NO_OFFSET:
        if _leads_something(image, settings, broker.id):
            return _State.LEAVING
        known_to_all = leaving_since <= sessions.lowest_active_offset(image.brokers.values())
        return _State.GONE if known_to_all else _State.LEAVING
    if request.want_shut_down:
        at_once = request.want_fence or not _leads_something(image, settings, broker.id)
        return _State.GONE if at_once else _State.LEAVING
    return _State.FENCED if request.want_fence else _State.UNFENCED


def _transition(
    image: MetadataImage, settings: Settings, broker: BrokerRegistration, state: _State
) -> list[MetadataRecord]:
    if state is _State.LEAVING:
        return _enter_controlled_shutdown(image, settings, broker)
    if state is _State.UNFENCED:
        return _unfence(image, settings, broker) if broker.fenced else []
    return [] if broker.fenced else fence(image, settings, broker.id)


def unregister(
    image: MetadataImage, settings: Settings, request: "messages.UnregisterBrokerRequest"
) -> "Decision[messages.UnregisterBrokerResponse]":
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker {request.broker_id} is not registered."
        return Decision(
            messages.UnregisterBrokerResponse(error_code=Errors.BROKER_ID_NOT_REGISTERED, error_message=message)
        )
    records = without(image, settings, broker.id, where=lambda p: broker.id in p.isr or broker.id in p.elr)
    record = messages.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return Decision(messages.UnregisterBrokerResponse(error_message=None), (*records, record))


def fence(image: MetadataImage, settings: Settings, broker_id: int) -> list[MetadataRecord]:
    return [
        *without(image, settings, broker_id, where=_given_up_by(image, settings, broker_id)),
        _registration_change(image.brokers[broker_id], fenced=FENCE),
    ]


def _given_up_by(image: MetadataImage, settings: Settings, broker_id: int) -> Callable[[PartitionImage], bool]:
    """Partitions to change when a broker leaves: all that count on it.

    A node that is the whole cluster keeps what only it has: nobody is there to see a partition without a leader, and
    its restart gives each of them a new epoch anyway. It would cost two records a partition at every restart.
    """
    if _is_alone(image, settings, broker_id):
        return lambda p: broker_id in p.isr and len(p.replicas) > 1
    return lambda p: broker_id in p.isr


def _is_alone(image: MetadataImage, settings: Settings, broker_id: int) -> bool:
    return broker_id == settings.node_id and len(image.brokers) == 1


def _leads_something(image: MetadataImage, settings: Settings, broker_id: int) -> bool:
    given_up = _given_up_by(image, settings, broker_id)
    return any(
        partition.leader == broker_id and given_up(partition)
        for topic in image.topics_by_id.values()
        for partition in topic.partitions.values()
    )


def _unfence(image: MetadataImage, settings: Settings, broker: BrokerRegistration) -> list[MetadataRecord]:
    """The broker may lead again: what has no leader, and what nobody else can lead."""
    records: list[MetadataRecord] = [_registration_change(broker, fenced=UNFENCE)]
    sole = (broker.id,)
    may_lead = eligible_leaders(image, also=broker.id)
    for topic in image.topics_by_id.values():
        rules: ElectionRules | None = None
        for index, partition in topic.partitions.items():
            is_mine = partition.replicas == sole
            if is_mine and may_lead(broker.id, partition.directories[0]):
                records.append(lead_again(topic.id, index, partition))
            elif is_mine or partition.leader < 0:
                rules = rules or topic_rules(image, settings, topic, may_lead=may_lead)
                wanted = Wanted(isr=() if is_mine else partition.isr)
                record = change_partition(topic.id, index, partition, wanted, rules)
                if record is not None:
                    records.append(record)
    return records


def after_shutdown(image: MetadataImage, settings: Settings, broker_id: int, *, clean: bool) -> list[MetadataRecord]:
    """What the end of a broker's former life means for partitions that others can lead (KIP-966)."""
    unclean = () if clean or not image.elr_enabled else (broker_id,)
    return without(
        image,
        settings,
        broker_id,
        where=lambda p: len(p.replicas) > 1 and (broker_id in p.isr or (bool(unclean) and broker_id in p.elr)),
        unclean=unclean,
    )


def _enter_controlled_shutdown(
    image: MetadataImage, settings: Settings, broker: BrokerRegistration
) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    if not broker.in_controlled_shutdown:
        records.append(
            messages.BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
            )
        )
    return [*records, *without(image, settings, broker.id, where=_given_up_by(image, settings, broker.id))]


def without(
    image: MetadataImage,
    settings: Settings,
    broker_id: int,
    *,
    where: Callable[[PartitionImage], bool],
    unclean: tuple[int, ...] = (),
) -> list[MetadataRecord]:
    """Changes that take a broker out of the ISR and the leadership of the partitions `where` picks."""
    may_lead = eligible_leaders(image, without=broker_id)
    records: list[MetadataRecord] = []
    for topic in image.topics_by_id.values():
        rules: ElectionRules | None = None
        for index, partition in topic.partitions.items():
            if not where(partition):
                continue
            rules = rules or topic_rules(image, settings, topic, may_lead=may_lead, unclean_replicas=unclean)
            wanted = Wanted(isr=tuple([r for r in partition.isr if r != broker_id]))
            record = change_partition(topic.id, index, partition, wanted, rules)
            if record is not None:
                records.append(record)
    return records


def _directory_changes(
    image: MetadataImage,
    settings: Settings,
    broker: BrokerRegistration,
    request: "messages.BrokerHeartbeatRequest",
) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    lost = [d for d in broker.log_dirs if d in request.offline_log_dirs]
    if lost:
        records += without(
            image, settings, broker.id, where=lambda p: broker.id in p.replicas and p.directory(broker.id) in lost
        )
        online = [d for d in broker.log_dirs if d not in lost]
        records.append(
            messages.BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=list(online)
            )
        )
    cordoned = request.cordoned_log_dirs
    if cordoned is not None and tuple(cordoned) != broker.cordoned_log_dirs:
        records.append(
            messages.BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
            )
        )
    return records


def _registration_change(broker: BrokerRegistration, *, fenced: int) -> "messages.BrokerRegistrationChangeRecord":
    return messages.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=fenced)
