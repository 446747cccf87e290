"""The group coordinator of this node, put together from the settings, and the one way handlers ask it."""

from asyncio import Future
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ottla.broker.coordination.coordinators import Coordinators, Host, guarded
from ottla.broker.settings.internal_topics import offsets_topic
from ottla.coordinator.records import Decoder
from ottla.coordinator.shard import Decision, Now
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.model.permissions import DESCRIBE_TOPIC
from ottla.model.ports import Ids
from ottla.model.properties import Settings
from ottla.model.properties.grammar import assignor_name
from ottla.protocol import messages
from ottla.runtime.coordinator import CoordinatorError

if TYPE_CHECKING:
    from ottla.broker.front.session import Session
    from ottla.broker.services import Services
    from ottla.coordinator.group.caller import Caller
    from ottla.coordinator.group.shard import GroupShard
    from ottla.coordinator.group.state import GroupSettings

R = TypeVar("R")


def group_coordinators(settings: Settings, host: Host, ids: Ids) -> "Coordinators[GroupShard]":
    """Settings that change at run time reach the shards by `reconfigure`."""

    def new_id() -> str:
        text = ids.uuid().hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def make_shard(_: int) -> "GroupShard":
        from ottla.coordinator.group.shard import GroupShard  # noqa: PLC0415  a node without groups does without

        return GroupShard(group_settings(settings), new_id, groups_here)

    def groups_here() -> int:
        return sum(len(runner.shard.state.groups) for runner in coordinators.runners())

    coordinators: Coordinators[GroupShard] = Coordinators(
        offsets_topic(settings),
        host,
        Decoder(messages.GROUP_RECORDS),
        make_shard,
        codec=settings.get_int("offsets.topic.compression.codec"),
        timeout_ms=settings.get_int("offsets.commit.timeout.ms"),
    )
    return coordinators


def reconfigure(groups: "Coordinators[GroupShard]", settings: Settings) -> None:
    if not groups.runners():
        return
    fresh = group_settings(settings)
    for runner in groups.runners():
        runner.shard.change_settings(fresh)


def group_settings(settings: Settings) -> "GroupSettings":
    from ottla.coordinator.group.state import GroupSettings  # noqa: PLC0415

    number = settings.get_int

    def millis(name: str) -> Millis:
        return Millis(number(name))

    return GroupSettings(
        offset_metadata_max_bytes=number("offset.metadata.max.bytes"),
        offsets_retention=Millis(number("offsets.retention.minutes") * 60_000),
        offsets_retention_check=millis("offsets.retention.check.interval.ms"),
        min_session_timeout=millis("group.min.session.timeout.ms"),
        max_session_timeout=millis("group.max.session.timeout.ms"),
        initial_rebalance_delay=millis("group.initial.rebalance.delay.ms"),
        classic_max_size=number("group.max.size"),
        consumer_max_size=number("group.consumer.max.size"),
        consumer_session_timeout=millis("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval=millis("group.consumer.heartbeat.interval.ms"),
        consumer_assignment_interval=millis("group.consumer.assignment.interval.ms"),
        consumer_assignors=tuple(dict.fromkeys(map(assignor_name, settings.get_list("group.consumer.assignors")))),
        migration_policy=settings.get_str("group.consumer.migration.policy"),
        regex_refresh=millis("group.consumer.regex.refresh.interval.ms"),
        max_groups=number("ottla.groups.max"),
    )


def caller_of(services: "Services", session: "Session", version: int) -> "Caller":
    from ottla.coordinator.group.caller import Caller  # noqa: PLC0415

    client = session.client

    def may_describe(topic: str) -> bool:
        return client.elsewhere(*DESCRIBE_TOPIC, topic)

    return Caller(session.client_id, f"/{client.host}", version, may_describe)


def ask(
    groups: "Coordinators[GroupShard]",
    group_id: str,
    command: "Callable[[GroupShard, Now], Decision[R]]",
    on_error: Callable[[Errors], R],
) -> "R | Future[R]":
    """Lets the shard that keeps `group_id` decide; `on_error` makes the response if no shard here can."""
    try:
        outcome = groups.runner_for(group_id).submit(command)
    except CoordinatorError as refused:
        return on_error(refused.error)
    return guarded(outcome, on_error)
