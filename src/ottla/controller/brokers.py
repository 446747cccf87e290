"""Brokers come, go and come back: registration, heartbeats, fencing (KIP-500, KIP-841, KIP-966).

All of it is decided from the image. What a session needs beyond it (when a broker was last heard) is soft state and
lives in `Sessions`, armed afresh by whoever leads.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ottla.controller.effective import topic_rules
from ottla.controller.partitions import ElectionRules, change_partition, lead_again
from ottla.controller.refusal import Refusal
from ottla.metadata.image import KRAFT_VERSION, METADATA_VERSION, BrokerRegistration, MetadataImage, PartitionImage
from ottla.model.core import Decision
from ottla.model.errors import Errors
from ottla.model.ids import Millis, uuid_text
from ottla.model.properties import Settings
from ottla.protocol import messages

FENCE: Final = 1
UNFENCE: Final = -1
RESERVED_DIRECTORY_IDS: Final = 100
"""Directory ids below this number mean unassigned, lost, migrating and the like (KIP-858)."""


def stale_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is None or broker.epoch != broker_epoch


class Sessions:
    """When each broker was last heard of. A broker in the controller's own process needs no session."""

    __slots__ = ("_heard", "_in_process", "_registered_at", "_timeout")

    def __init__(self, timeout: Millis, in_process: int) -> None:
        self._timeout = timeout
        self._in_process = in_process
        self._heard: dict[int, Millis] = {}
        self._registered_at: dict[int, int] = {}

    def heard(self, broker_id: int, now: Millis) -> None:
        self._heard[broker_id] = now

    def registered(self, broker_id: int, offset: int) -> None:
        self._registered_at[broker_id] = offset

    def registration_offset(self, broker: BrokerRegistration) -> int:
        """Where the registration stands in the log; one that came with a snapshot is at or below its epoch."""
        return self._registered_at.get(broker.id, broker.epoch)

    def is_valid(self, broker_id: int, now: Millis) -> bool:
        heard = self._heard.get(broker_id)
        return broker_id != self._in_process and heard is not None and now < heard + self._timeout

    def forget(self, broker_id: int) -> None:
        self._heard.pop(broker_id, None)
        self._registered_at.pop(broker_id, None)

    def expired(self, brokers: Iterable[BrokerRegistration], now: Millis) -> Iterator[int]:
        """Unfenced brokers whose session ran out. One never heard of is given a whole session from now on."""
        for broker in brokers:
            if broker.fenced or broker.id == self._in_process:
                continue
            if now >= self._heard.setdefault(broker.id, now) + self._timeout:
                yield broker.id


def register(
    image: MetadataImage,
    settings: Settings,
    sessions: Sessions,
    request: "messages.BrokerRegistrationRequest",
    *,
    next_offset: int,
    now: Millis,
    kraft_version: int,
) -> "Decision[messages.BrokerRegistrationResponse]":
    refusal = _registration_refusal(image, sessions, request, now, kraft_version)
    if refusal is not None:
        return Decision(messages.BrokerRegistrationResponse(error_code=refusal.error))
    existing = image.brokers.get(request.broker_id)
    record = _registration_record(request)
    records: list[object] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        # The same process amends its registration: its epoch and state stay.
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    else:
        record.broker_epoch = next_offset
        clean = existing is not None and existing.epoch == request.previous_broker_epoch
        records += _after_shutdown(image, settings, request.broker_id, clean=clean)
    # Last, so that a crash in the middle of a long list makes the broker register, and the clean-up happen, again.
    records.append(record)
    reply = messages.BrokerRegistrationResponse(broker_epoch=record.broker_epoch)
    return Decision(reply, tuple(records))


def _registration_record(request: "messages.BrokerRegistrationRequest") -> "messages.RegisterBrokerRecord":
    kind = messages.RegisterBrokerRecord
    return kind(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            kind.BrokerEndpoint(name=x.name, host=x.host, port=x.port, security_protocol=x.security_protocol)
            for x in request.listeners
        ],
        features=[
            kind.BrokerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ],
        rack=request.rack,
        log_dirs=list(request.log_dirs),
    )


def _registration_refusal(
    image: MetadataImage,
    sessions: Sessions,
    request: "messages.BrokerRegistrationRequest",
    now: Millis,
    kraft_version: int,
) -> Refusal | None:
    existing = image.brokers.get(request.broker_id)
    if request.cluster_id != image.cluster_id:
        return Refusal(
            Errors.INCONSISTENT_CLUSTER_ID,
            f"Broker {request.broker_id} belongs to cluster {request.cluster_id}, this is {image.cluster_id}.",
        )
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and sessions.is_valid(existing.id, now)
    ):
        return Refusal(
            Errors.DUPLICATE_BROKER_REGISTRATION, f"Another process is registered as broker {existing.id} and is alive."
        )
    if request.is_migrating_zk_broker:
        return Refusal(Errors.BROKER_ID_NOT_REGISTERED, "Brokers of a ZooKeeper cluster cannot register.")
    return _directories_refusal(image, request) or _features_refusal(image, request, kraft_version)


def _directories_refusal(image: MetadataImage, request: "messages.BrokerRegistrationRequest") -> Refusal | None:
    dirs = request.log_dirs
    if not dirs:
        return Refusal(Errors.INVALID_REGISTRATION, "A broker must name its log directories.")
    if any(int.from_bytes(d, "big") < RESERVED_DIRECTORY_IDS for d in dirs):
        return Refusal(Errors.INVALID_REGISTRATION, "A log directory has a reserved id.")
    if len(dict.fromkeys(dirs)) != len(dirs):
        return Refusal(Errors.INVALID_REGISTRATION, "Two log directories have the same id.")
    for other in image.brokers.values():
        taken = [d for d in dirs if d in other.log_dirs]
        if other.id != request.broker_id and taken:
            return Refusal(
                Errors.INVALID_REGISTRATION, f"Log directory {uuid_text(taken[0])} belongs to broker {other.id}."
            )
    return None


def _features_refusal(
    image: MetadataImage, request: "messages.BrokerRegistrationRequest", kraft_version: int
) -> Refusal | None:
    offered = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
    if METADATA_VERSION not in offered:
        return Refusal(Errors.INVALID_REGISTRATION, f"The broker does not say which {METADATA_VERSION} it supports.")
    finalized = {**image.features, KRAFT_VERSION: kraft_version}
    for name in dict.fromkeys((*offered, *finalized)):
        level = finalized.get(name, 0)
        low, high = offered.get(name, (0, 0))
        if not low <= level <= high:
            return Refusal(
                Errors.UNSUPPORTED_VERSION,
                f"{name} is finalized at {level}; broker {request.broker_id} supports {low} to {high}.",
            )
    return None


def heartbeat(
    image: MetadataImage, settings: Settings, sessions: Sessions, request: "messages.BrokerHeartbeatRequest"
) -> "Decision[messages.BrokerHeartbeatResponse]":
    kind = messages.BrokerHeartbeatResponse
    if stale_epoch(image, request.broker_id, request.broker_epoch):
        return Decision(kind(error_code=Errors.STALE_BROKER_EPOCH))
    broker = image.brokers[request.broker_id]
    caught_up = request.current_metadata_offset >= sessions.registration_offset(broker)
    records: list[object] = []
    fenced, shut_down = broker.fenced, False
    if broker.in_controlled_shutdown or request.want_shut_down:
        shut_down = broker.fenced or request.want_fence or not _can_hand_over(image, broker.id)
        fenced = shut_down
        if shut_down and not broker.fenced:
            records += fence(image, settings, broker.id)
        elif not shut_down and not broker.in_controlled_shutdown:
            records += _enter_controlled_shutdown(image, settings, broker)
    elif request.want_fence and not broker.fenced:
        fenced = True
        records += fence(image, settings, broker.id)
    elif broker.fenced and not request.want_fence and caught_up:
        fenced = False
        records += _unfence(image, settings, broker)
    records += _directory_changes(image, settings, broker, request)
    reply = kind(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=shut_down)
    return Decision(reply, tuple(records))


def unregister(
    image: MetadataImage, settings: Settings, request: "messages.UnregisterBrokerRequest"
) -> "Decision[messages.UnregisterBrokerResponse]":
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker {request.broker_id} is not registered."
        return Decision(
            messages.UnregisterBrokerResponse(error_code=Errors.BROKER_ID_NOT_REGISTERED, error_message=message)
        )
    records = _without(image, settings, broker.id, where=lambda p: broker.id in p.isr or broker.id in p.elr)
    record = messages.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return Decision(messages.UnregisterBrokerResponse(error_message=None), (*records, record))


def fence(image: MetadataImage, settings: Settings, broker_id: int) -> list[object]:
    broker = image.brokers[broker_id]
    records = _without(image, settings, broker_id, where=lambda p: broker_id in p.isr and len(p.replicas) > 1)
    return [*records, _registration_change(broker, fenced=FENCE)]


def _unfence(image: MetadataImage, settings: Settings, broker: BrokerRegistration) -> list[object]:
    """The broker may lead again: what has no leader, and what nobody else can lead."""
    records: list[object] = [_registration_change(broker, fenced=UNFENCE)]
    sole = (broker.id,)
    for topic in image.topics_by_id.values():
        rules: ElectionRules | None = None
        for index, partition in topic.partitions.items():
            if partition.replicas == sole:
                records.append(lead_again(topic.id, index, partition))
            elif partition.leader < 0:
                rules = rules or topic_rules(image, settings, topic, may_lead=_active_or(image, broker.id))
                record = change_partition(topic.id, index, partition, partition.isr, rules)
                if record is not None:
                    records.append(record)
    return records


def _after_shutdown(image: MetadataImage, settings: Settings, broker_id: int, *, clean: bool) -> list[object]:
    """What the end of a broker's former life means for partitions that others can lead (KIP-966)."""
    unclean = () if clean or not image.elr_enabled else (broker_id,)
    return _without(
        image,
        settings,
        broker_id,
        where=lambda p: len(p.replicas) > 1 and (broker_id in p.isr or (bool(unclean) and broker_id in p.elr)),
        unclean=unclean,
    )


def _enter_controlled_shutdown(image: MetadataImage, settings: Settings, broker: BrokerRegistration) -> list[object]:
    change = messages.BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
    )
    return [
        change,
        *_without(image, settings, broker.id, where=lambda p: broker.id in p.isr and len(p.replicas) > 1),
    ]


def _can_hand_over(image: MetadataImage, broker_id: int) -> bool:
    """Whether waiting helps: some partition it leads has another replica."""
    return any(
        partition.leader == broker_id and len(partition.replicas) > 1
        for topic in image.topics_by_id.values()
        for partition in topic.partitions.values()
    )


def _without(
    image: MetadataImage,
    settings: Settings,
    broker_id: int,
    *,
    where: Callable[[PartitionImage], bool],
    unclean: tuple[int, ...] = (),
) -> list[object]:
    """Changes that take a broker out of the ISR and the leadership of the partitions `where` picks."""

    def may_lead(replica: int) -> bool:
        return replica != broker_id and _is_active(image, replica)

    records: list[object] = []
    for topic in image.topics_by_id.values():
        rules: ElectionRules | None = None
        for index, partition in topic.partitions.items():
            if not where(partition):
                continue
            rules = rules or topic_rules(image, settings, topic, may_lead=may_lead, unclean_replicas=unclean)
            isr = [r for r in partition.isr if r != broker_id]
            record = change_partition(topic.id, index, partition, isr, rules)
            if record is not None:
                records.append(record)
    return records


def _directory_changes(
    image: MetadataImage,
    settings: Settings,
    broker: BrokerRegistration,
    request: "messages.BrokerHeartbeatRequest",
) -> list[object]:
    records: list[object] = []
    lost = [d for d in broker.log_dirs if d in request.offline_log_dirs]
    if lost:
        records += _without(
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


def _active_or(image: MetadataImage, also: int) -> Callable[[int], bool]:
    """While a broker is being unfenced the image still shows it fenced."""
    return lambda replica: replica == also or _is_active(image, replica)


def _is_active(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active


def register_controller(
    image: MetadataImage, request: "messages.ControllerRegistrationRequest"
) -> "Decision[messages.ControllerRegistrationResponse]":
    kind = messages.RegisterControllerRecord
    record = kind(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            kind.ControllerEndpoint(name=x.name, host=x.host, port=x.port, security_protocol=x.security_protocol)
            for x in request.listeners
        ],
        features=[
            kind.ControllerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ],
    )
    return Decision(messages.ControllerRegistrationResponse(), (record,))
