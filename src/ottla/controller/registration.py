"""Nodes introduce themselves: which brokers and controllers a cluster takes in (KIP-500, KIP-858, KIP-919)."""

from typing import Final

from ottla.controller.brokers import after_shutdown
from ottla.controller.decision import Decision
from ottla.controller.refusal import Refusal
from ottla.controller.sessions import Sessions
from ottla.metadata.image import KRAFT_VERSION, METADATA_VERSION, MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis, uuid_text
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

RESERVED_DIRECTORY_IDS: Final = 100
"""Directory ids below this number mean unassigned, lost, migrating and the like (KIP-858)."""


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
    records: list[MetadataRecord] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        # The same process amends its registration: its epoch and state stay.
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    else:
        record.broker_epoch = next_offset
        clean = existing is not None and existing.epoch == request.previous_broker_epoch
        records += after_shutdown(image, settings, request.broker_id, clean=clean)
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
    if existing is not None and existing.incarnation_id != request.incarnation_id and sessions.is_alive(existing, now):
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
