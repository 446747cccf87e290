"""ConsumerGroupDescribe: epochs, members and assignments of consumer-protocol groups.

Versions 0 and 1. 1 tells which members speak the classic protocol (KIP-1099).
"""

from ottla.broker.front.session import Session
from ottla.broker.handlers.k68_consumer_group_heartbeat import enabled
from ottla.broker.security.missing import missing
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC, Resource
from ottla.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ottla.runtime.coordinator import CoordinatorError


def handle(
    services: Services, session: Session, request: ConsumerGroupDescribeRequest, version: int
) -> ConsumerGroupDescribeResponse:
    groups = [_describe(services, session, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = session.client.operations(Resource.GROUP, group.group_id)
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(services: Services, session: Session, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
    if not enabled(services):
        return _error(group_id, Errors.UNSUPPORTED_VERSION)
    if not session.client.may(*DESCRIBE_GROUP, group_id):
        needed = missing(session.client.principal, (DESCRIBE_GROUP,), group_id)
        return _error(group_id, Errors.GROUP_AUTHORIZATION_FAILED, needed)
    if not group_id:
        return _error(group_id, Errors.INVALID_GROUP_ID)
    try:
        runner = services.coordination.groups.runner_for(group_id)
        runner.check()
    except CoordinatorError as refused:
        return _error(group_id, refused.error)
    described = runner.shard.describe_consumer(group_id)
    for member in described.members:
        for topic in (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions):
            if not session.client.may(*DESCRIBE_TOPIC, topic.topic_name):
                return _error(group_id, Errors.TOPIC_AUTHORIZATION_FAILED)
    return described


def _error(group_id: str, error: Errors, message: str | None = None) -> ConsumerGroupDescribeResponse.DescribedGroup:
    return ConsumerGroupDescribeResponse.DescribedGroup(group_id=group_id, error_code=error, error_message=message)
