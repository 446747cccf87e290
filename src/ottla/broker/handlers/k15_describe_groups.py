"""DescribeGroups: the members of classic groups.

Versions 0 to 6. 3 tells what one may do (KIP-430); 4 static members (KIP-345); 5 is flexible; 6 says
GROUP_ID_NOT_FOUND where there was a dead group before (KIP-1043).
"""

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_GROUP, Resource
from ottla.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.runtime.coordinator import CoordinatorError

OPERATIONS_FROM = 3


def handle(
    services: Services, session: Session, request: DescribeGroupsRequest, version: int
) -> DescribeGroupsResponse:
    groups = [_describe(services, session, group_id, version) for group_id in request.groups]
    if version >= OPERATIONS_FROM and request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = session.client.operations(Resource.GROUP, group.group_id)
    return DescribeGroupsResponse(groups=groups)


def _describe(
    services: Services, session: Session, group_id: str, version: int
) -> DescribeGroupsResponse.DescribedGroup:
    if not session.client.may(*DESCRIBE_GROUP, group_id):
        return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=Errors.GROUP_AUTHORIZATION_FAILED)
    try:
        runner = services.coordination.groups.runner_for(group_id)
        runner.check()
    except CoordinatorError as refused:
        return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=refused.error)
    return runner.shard.describe(group_id, version)
