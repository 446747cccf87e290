"""The part of Produce that only transactions have: whose batches these are, and the proof that they may be appended."""

from asyncio import Future
from collections.abc import Iterator

from ottla.broker.coordination.verification import Opening, Proofs, produce_rules
from ottla.broker.front.session import Session
from ottla.broker.partition import Partition
from ottla.broker.services import Services
from ottla.broker.settings.internal_topics import INTERNAL_TOPICS
from ottla.coordinator.transaction.machine import Producer
from ottla.model.errors import Errors
from ottla.model.permissions import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from ottla.protocol.batch import HEADER_SIZE, TRANSACTIONAL, BatchHeader, read_header
from ottla.protocol.messages import ProduceRequest
from ottla.storage.producer_state import UNCHECKED

BY_TOPIC_ID = 13


def proofs_for(
    services: Services, session: Session, request: ProduceRequest, version: int
) -> "Proofs | Errors | Future[Proofs]":
    """Errors: the whole request is refused with it."""
    name = request.transactional_id
    assert name is not None
    batches = list(_transactional_batches(services, session, request, version))
    if not batches:
        return Proofs()
    if not session.client.may(*WRITE_TRANSACTIONAL_ID, name):
        return Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    first = batches[0][1]
    producer = Producer(first.producer_id, first.producer_epoch)
    if any((header.producer_id, header.producer_epoch) != producer for _, header in batches):
        return Errors.INVALID_PRODUCER_ID_MAPPING
    rules = produce_rules(version)
    if not rules.adds and not services.configs.settings.get_bool("transaction.partition.verification.enable"):
        proofs = Proofs()
        proofs.otherwise = UNCHECKED
        return proofs
    openings = [Opening(partition, header.base_sequence) for partition, header in batches if partition is not None]
    verifier = services.coordination.verifier
    proofs = verifier.begin(producer, openings, rules)
    return verifier.ask(name, producer, proofs, rules) if proofs.shown else proofs


def _transactional_batches(
    services: Services, session: Session, request: ProduceRequest, version: int
) -> Iterator[tuple[Partition | None, BatchHeader]]:
    """None in place of a partition that the request does not reach: it must not join the transaction."""
    replicas = services.replicas
    for topic in request.topic_data:
        known = replicas.by_id.get(topic.topic_id) if version >= BY_TOPIC_ID else replicas.by_name.get(topic.name)
        if known is not None and not _may_write(session, known.name):
            known = None
        for data in topic.partition_data:
            records = data.records
            if records is None or len(records) < HEADER_SIZE:
                continue
            header = read_header(records)
            if header.attributes & TRANSACTIONAL and header.producer_id >= 0:
                yield known.partitions.get(data.index) if known is not None else None, header


def _may_write(session: Session, topic: str) -> bool:
    return topic not in INTERNAL_TOPICS and session.client.may(*WRITE_TOPIC, topic)
