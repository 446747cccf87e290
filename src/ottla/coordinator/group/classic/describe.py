"""What DescribeGroups tells, which knows classic groups only."""

from ottla.coordinator.group.classic.group import ClassicGroup, State
from ottla.model.errors import Errors
from ottla.protocol.messages import DescribeGroupsResponse

_NOT_FOUND_TOLD_FROM = 6
"""The version from which an unknown group is an error (KIP-1043)."""


def no_classic_group(group_id: str, version: int, *, exists: bool) -> DescribeGroupsResponse.DescribedGroup:
    dead = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    if version >= _NOT_FOUND_TOLD_FROM:
        dead.error_code = Errors.GROUP_ID_NOT_FOUND
        dead.error_message = f"Group {group_id} {'is not a classic group' if exists else 'not found'}."
    return dead


def described(group: ClassicGroup) -> DescribeGroupsResponse.DescribedGroup:
    stable = group.state is State.STABLE
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if stable else b"",
                # During a rebalance members still work on what they were given last; only what they offer is open.
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
