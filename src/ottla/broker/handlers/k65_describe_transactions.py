"""DescribeTransactions: what the coordinator knows of transactional ids (KIP-664).

Version 0 only.
"""

from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.coordinator.transaction.machine import by_topic
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_TOPIC, DESCRIBE_TRANSACTIONAL_ID
from ottla.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse

State: TypeAlias = DescribeTransactionsResponse.TransactionState


def handle(
    services: Services, session: Session, request: DescribeTransactionsRequest, version: int
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(services, session, name) for name in request.transactional_ids]
    )


def _describe(services: Services, session: Session, name: str) -> State:
    may = session.client.may
    if not may(*DESCRIBE_TRANSACTIONAL_ID, name):
        return State(transactional_id=name, error_code=Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not name:
        return State(transactional_id=name, error_code=Errors.INVALID_REQUEST)
    found = services.coordination.transactions.describe(name)
    if isinstance(found, Errors):
        return State(transactional_id=name, error_code=found)
    return State(
        transactional_id=name,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic, indexes)
            for topic, indexes in by_topic(found.partitions).items()
            if session.client.sees(*DESCRIBE_TOPIC, topic)
        ],
    )
