"""ListGroups: every group that this broker keeps.

Versions 0 to 5. 3 is flexible; 4 filters by state (KIP-518), 5 by type (KIP-848).
"""

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import CLUSTER_NAME, DESCRIBE_CLUSTER, DESCRIBE_GROUP
from ottla.protocol.messages import ListGroupsRequest, ListGroupsResponse


def handle(services: Services, session: Session, request: ListGroupsRequest, version: int) -> ListGroupsResponse:
    sees_all = session.client.sees(*DESCRIBE_CLUSTER, CLUSTER_NAME)
    groups: list[ListGroupsResponse.ListedGroup] = []
    for runner in services.coordination.groups.runners():
        if runner.error == Errors.COORDINATOR_LOAD_IN_PROGRESS:
            return ListGroupsResponse(error_code=runner.error)
        if runner.error is None:
            groups += runner.shard.list_groups(request.states_filter, request.types_filter)
    if not sees_all:
        sees = session.client.sees
        groups = [group for group in groups if sees(*DESCRIBE_GROUP, group.group_id)]
    return ListGroupsResponse(groups=groups)
