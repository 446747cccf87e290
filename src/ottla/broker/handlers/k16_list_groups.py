"""ListGroups: every group that this broker keeps."""

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.messages import ListGroupsRequest, ListGroupsResponse

NEEDS = (Operation.DESCRIBE, Resource.GROUP)


def handle(services: Services, session: Session, request: ListGroupsRequest, version: int) -> ListGroupsResponse:
    sees_all = services.authorizer.allows(
        session.principal, session.host, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME
    )
    groups: list[ListGroupsResponse.ListedGroup] = []
    for runner in services.groups.runners():
        if runner.error == Errors.COORDINATOR_LOAD_IN_PROGRESS:
            return ListGroupsResponse(error_code=runner.error)
        if runner.error is None:
            groups += runner.shard.list_groups(request.states_filter, request.types_filter)
    if not sees_all:
        allows = services.authorizer.allows
        groups = [group for group in groups if allows(session.principal, session.host, *NEEDS, group.group_id)]
    return ListGroupsResponse(groups=groups)
