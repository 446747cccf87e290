"""Conversations about groups: what members, strangers, late comers and nonsense are told."""

from collections.abc import Iterable
from typing import Any

from ottla.protocol import messages as m
from tests.support.conversation import UNKNOWN_ID, Conversation, Step
from tests.support.requests import create_topic
from tests.support.wire import Deadline, Wire, latest, versions

MEMBER_ID_REQUIRED = 79
NOT_YET = (14, 15, 16)
NOBODY = "nobody"
BY_ID_COMMIT, BY_ID_FETCH = 10, 10
"""The versions of OffsetCommit and OffsetFetch from which on topics are named by id."""


def ready(wire: Wire, *groups: str) -> None:
    """The coordinator of each group answers."""
    for group in groups:
        deadline = Deadline(f"the coordinator of {group}")
        while wire.ask(m.FindCoordinatorRequest(coordinator_keys=[group])).coordinators[0].error_code:
            deadline.check()
        while (told := wire.ask(m.HeartbeatRequest(group, 1, NOBODY))).error_code in NOT_YET:
            deadline.check(told)


# ---- requests


def join(group: str, member: str = "", **options: Any) -> m.JoinGroupRequest:
    kind = m.JoinGroupRequest
    protocols: Iterable[tuple[str, bytes]] = options.pop("protocols", (("range", subscription("t")),))
    given = {"session_timeout_ms": 120_000, "rebalance_timeout_ms": 120_000, "protocol_type": "consumer", **options}
    return kind(
        group_id=group,
        member_id=member,
        protocols=[kind.JoinGroupRequestProtocol(name, metadata) for name, metadata in protocols],
        **given,
    )


def subscription(*topics: str) -> bytes:
    return b"\0\1" + m.ConsumerProtocolSubscription(topics=list(topics)).encode(1)


def sync(group: str, member: str, generation: int, **options: Any) -> m.SyncGroupRequest:
    kind = m.SyncGroupRequest
    return kind(group, generation, member, assignments=[kind.SyncGroupRequestAssignment(member, b"yours")], **options)


def commit(
    group: str, topic: str, topic_id: bytes, version: int, *, member: str = "", generation: int = -1, **options: Any
) -> m.OffsetCommitRequest:
    kind = m.OffsetCommitRequest
    partitions = [
        kind.OffsetCommitRequestPartition(
            index, committed_offset=options.get("offset", 5), committed_metadata=options.get("metadata", "note")
        )
        for index in options.get("partitions", (0,))
    ]
    by_id = version >= BY_ID_COMMIT
    where = kind.OffsetCommitRequestTopic("" if by_id else topic, topic_id if by_id else bytes(16), partitions)
    return kind(group, generation, member, options.get("instance"), topics=[where])


def fetch(
    group: str, topic: str | None, topic_id: bytes, version: int, *, stable: bool = False, **who: Any
) -> m.OffsetFetchRequest:
    kind = m.OffsetFetchRequest
    if version < 8:
        old = None if topic is None else [kind.OffsetFetchRequestTopic(topic, [0, 7])]
        return kind(group, old, require_stable=stable and version >= 7)
    by_id = version >= BY_ID_FETCH
    topics = None
    if topic is not None:
        topics = [kind.OffsetFetchRequestTopics("" if by_id else topic, topic_id if by_id else bytes(16), [0, 7])]
    return kind(groups=[kind.OffsetFetchRequestGroup(group, topics=topics, **who)], require_stable=stable)


# ---- the classic protocol


def classic(wire: Wire, t: str) -> Conversation:
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups."""
    topic = f"{t}t"
    create_topic(wire, topic, 2)
    ready(wire, t)
    yield from _joins(t, topic)
    group = f"{t}stable"
    member = yield from stable(group, topic)
    yield from _signs_of_life(group, member, t)
    yield from _syncs(group, member, t)
    yield from _looks(group, t)
    yield from _static_members(t, topic)
    yield from _departures(group, member, t)


def stable(group: str, topic: str) -> Any:
    """A group of one member in generation 1; gives the member's id."""
    asked = join(group, protocols=(("range", subscription(topic)), ("mine", b"")))
    given = (yield Step("group of one: first", asked, 9)).member_id
    asked.member_id = given
    joined = yield Step("group of one: joined", asked, 9)
    yield Step("group of one: synced", sync(group, given, joined.generation_id), 5)
    return given


def _joins(t: str, topic: str) -> Conversation:
    for version in versions(11):
        group = f"{t}j{version}"
        told = yield Step("join: new", join(group), version)
        if told.error_code == MEMBER_ID_REQUIRED:
            told = yield Step("join: with its id", join(group, told.member_id), version)
        yield Step("join: again", join(group, told.member_id), version)
        yield Step("join: a stranger", join(group, NOBODY), version)
        yield Step("join: a stranger's group", join(f"{t}none", NOBODY), version)
        yield Step("join: no group", join(""), version)
        yield Step("join: session too short", join(group, session_timeout_ms=1), version)
        yield Step("join: session too long", join(group, session_timeout_ms=1_800_001), version)
        yield Step("join: another type", join(group, protocol_type="connect"), version)
        yield Step("join: another protocol", join(group, protocols=(("other", b""),)), version)
        yield Step("join: no protocol", join(f"{t}none", protocols=()), version)
        yield Step("join: no type", join(f"{t}none", protocol_type=""), version)
    opaque = join(f"{t}opaque", protocols=(("range", b"\xff\xff\xff"),))
    opaque.member_id = (yield Step("join: noise as subscription", opaque, 9)).member_id
    yield Step("join: noise as subscription", opaque, 9)
    yield Step("describe: noise", m.DescribeGroupsRequest([f"{t}opaque"]), 6)


def _signs_of_life(group: str, member: str, t: str) -> Conversation:
    for version in versions(12):
        for label, request in (
            ("well", m.HeartbeatRequest(group, 1, member)),
            ("an old generation", m.HeartbeatRequest(group, 0, member)),
            ("a generation to come", m.HeartbeatRequest(group, 2, member)),
            ("no generation", m.HeartbeatRequest(group, -1, member)),
            ("a stranger", m.HeartbeatRequest(group, 1, NOBODY)),
            ("nobody", m.HeartbeatRequest(group, 1, "")),
            ("no such group", m.HeartbeatRequest(f"{t}none", 1, member)),
            ("no group", m.HeartbeatRequest("", 1, member)),
        ):
            yield Step(f"heartbeat: {label}", request, version)
    yield Step("heartbeat: unknown instance", m.HeartbeatRequest(group, 1, member, "i"), 4)


def _syncs(group: str, member: str, t: str) -> Conversation:
    for version in versions(14):
        names = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
        for label, request in (
            ("again", sync(group, member, 1, **names)),
            ("an old generation", sync(group, member, 0, **names)),
            ("a generation to come", sync(group, member, 2, **names)),
            ("a stranger", sync(group, NOBODY, 1, **names)),
            ("no such group", sync(f"{t}none", member, 1, **names)),
            ("no group", sync("", member, 1, **names)),
        ):
            yield Step(f"sync: {label}", request, version)
    other = {"protocol_type": "connect", "protocol_name": "range"}
    yield Step("sync: another type", sync(group, member, 1, **other), 5)
    other = {"protocol_type": "consumer", "protocol_name": "mine"}
    yield Step("sync: another protocol", sync(group, member, 1, **other), 5)
    yield Step("sync: unknown instance", sync(group, member, 1, group_instance_id="i"), 5)


def _looks(group: str, t: str) -> Conversation:
    for version in versions(15):
        asked = m.DescribeGroupsRequest([group, f"{t}none", ""], include_authorized_operations=version >= 3)
        yield Step("describe", asked, version)
    for version in versions(16):
        yield Step("list", m.ListGroupsRequest(), version)
    for states in (["Stable"], ["stable", "Empty"], ["Nonsense"]):
        for version in (4, 5):
            yield Step(f"list: {states}", m.ListGroupsRequest(states), version)
    for kinds in (["classic"], ["Consumer"], ["nonsense"]):
        yield Step(f"list: {kinds}", m.ListGroupsRequest([], kinds), 5)


def _static_members(t: str, topic: str) -> Conversation:
    group = f"{t}static"
    first = yield Step("static: joins", join(group, group_instance_id="i"), 9)
    yield Step("static: syncs", sync(group, first.member_id, 1, group_instance_id="i"), 5)
    second = yield Step("static: comes back", join(group, group_instance_id="i"), 9)
    for version in (3, 4):
        yield Step("static: the first is fenced", m.HeartbeatRequest(group, 1, first.member_id, "i"), version)
    yield Step("static: the first joins", join(group, first.member_id, group_instance_id="i"), 9)
    yield Step("static: the first syncs", sync(group, first.member_id, 1, group_instance_id="i"), 5)
    yield Step("static: the first commits", commit(group, topic, bytes(16), 9, member=first.member_id, generation=1,
                                                   instance="i"), 9)  # fmt: skip
    yield Step("static: the second lives", m.HeartbeatRequest(group, 1, second.member_id, "i"), 4)
    who = m.LeaveGroupRequest.MemberIdentity
    yield Step("static: leaves by another id", leave(group, who(first.member_id, "i")), 5)
    yield Step("static: leaves by name", leave(group, who("", "i")), 5)
    yield Step("static: gone", m.HeartbeatRequest(group, 1, second.member_id, "i"), 4)


def leave(group: str, *members: Any) -> m.LeaveGroupRequest:
    return m.LeaveGroupRequest(group, members=list(members))


def _departures(group: str, member: str, t: str) -> Conversation:
    who = m.LeaveGroupRequest.MemberIdentity
    for version in range(3):
        yield Step("leave: a stranger", m.LeaveGroupRequest(group, NOBODY), version)
        yield Step("leave: no such group", m.LeaveGroupRequest(f"{t}none", member), version)
        yield Step("leave: no group", m.LeaveGroupRequest("", member), version)
    for version in range(3, latest(13) + 1):
        yield Step("leave: strangers", leave(group, who(NOBODY), who("", "i"), who(member, "i")), version)
        yield Step("leave: nobody", leave(group), version)
        yield Step("leave: no such group", leave(f"{t}none", who(member)), version)
        yield Step("leave: no group", leave("", who(member)), version)
    yield Step("leave", leave(group, who(member), who(member)), latest(13))
    yield Step("describe: left", m.DescribeGroupsRequest([group]), 6)


# ---- offsets


def offsets(wire: Wire, t: str) -> Conversation:
    """OffsetCommit, OffsetFetch, OffsetDelete, DeleteGroups."""
    topic = f"{t}t"
    topic_id = create_topic(wire, topic, 2)
    ready(wire, t)
    group = f"{t}stable"
    member = yield from stable(group, topic)
    for version in versions(8):
        yield from _commits(t, group, member, topic, topic_id, version)
    for version in versions(9):
        yield from _fetches(t, group, member, topic, topic_id, version)
    yield from _deletions(t, group, topic)


def _commits(t: str, group: str, member: str, topic: str, topic_id: bytes, version: int) -> Conversation:
    def step(label: str, group: str = group, topic: str = topic, topic_id: bytes = topic_id, **options: Any) -> Step:
        return Step(f"commit: {label}", commit(group, topic, topic_id, version, **options), version)

    mine: dict[str, Any] = {"member": member, "generation": 1}
    yield step("well", **mine)
    yield step("an old generation", member=member, generation=0)
    yield step("a generation to come", member=member, generation=2)
    yield step("no generation", member=member)
    yield step("nobody", generation=1)
    yield step("a stranger", member=NOBODY, generation=1)
    yield step("from outside")
    yield step("no such group", f"{t}none", **mine)
    yield step("a group of offsets only", f"{t}simple{version}")
    yield step("no group at all", "")
    yield step("a long note", metadata="x" * 4096, **mine)
    yield step("too long a note", metadata="x" * 4097, **mine)
    yield step("no note", metadata=None, **mine)
    yield step("a negative offset", offset=-5, **mine)
    yield step("no such partition", partitions=(0, 7, -1), **mine)
    yield step("no such topic", topic=f"{t}never", topic_id=UNKNOWN_ID, **mine)


def _fetches(t: str, group: str, member: str, topic: str, topic_id: bytes, version: int) -> Conversation:
    def step(label: str, group: str = group, topic: str | None = topic, **options: Any) -> Step:
        known = bytes(16) if topic is None else topic_id
        return Step(f"fetch offsets: {label}", fetch(group, topic, known, version, **options), version)

    yield step("well")
    yield step("stable", stable=True)
    yield step("no such group", f"{t}none")
    yield step("no group", "")
    if version >= 2:
        yield step("all", topic=None)
        yield step("all of no such group", f"{t}none", topic=None)
    if version < BY_ID_FETCH:
        yield step("no such topic", topic=f"{t}never")
    if version >= 9:
        yield step("a member", member_id=member, member_epoch=1)
        yield step("an old epoch", member_id=member, member_epoch=0)
        yield step("a stranger", member_id=NOBODY, member_epoch=1)


def _deletions(t: str, group: str, topic: str) -> Conversation:
    kind = m.OffsetDeleteRequest

    def delete(group: str, *topics: str) -> m.OffsetDeleteRequest:
        parts = [kind.OffsetDeleteRequestPartition(index) for index in (0, 7)]
        return kind(group, [kind.OffsetDeleteRequestTopic(name, parts) for name in topics])

    yield Step("delete offsets: in use", delete(group, topic), 0)
    yield Step("delete offsets: not in use", delete(f"{t}simple8", topic, f"{t}never"), 0)
    yield Step("delete offsets: no such group", delete(f"{t}none", topic), 0)
    yield Step("delete offsets: no group", delete("", topic), 0)
    for version in versions(42):
        names = [group, f"{t}none", "", f"{t}simple{version}"]
        yield Step("delete groups", m.DeleteGroupsRequest(names), version)
    yield Step("delete groups: one twice", m.DeleteGroupsRequest([f"{t}simple5", f"{t}simple5"]), 2)


# ---- the consumer protocol

BOMBS = ("((a{100}){100}){100}", "(((((x{10}){10}){10}){10}){10})")
PATTERNS = (
    "(", "[", "*", "a**", "(?=a)b", "(?!a)b", "(?<=a)b", r"(a)\1", "a{1001}", "a{2,1}", r"\pN",
    r"\p{Greek}", r"\p{Nonsense}", "(?i)ORDERS", "(?P<n>a)", "[[:alpha:]]+",
    "(a+)+$", "(a|a)*b", r"\Qa.b\E", "(?z)", r"\8", "x{,5}", "a++", "(?>a)", "",
)  # fmt: skip


def beat(group: str, member: str, epoch: int, **options: Any) -> m.ConsumerGroupHeartbeatRequest:
    if epoch == 0:
        options = {
            "rebalance_timeout_ms": 30_000,
            "subscribed_topic_names": [],
            "topic_partitions": [],
            **options,
        }
    return m.ConsumerGroupHeartbeatRequest(group, member, epoch, **options)


def consumer(wire: Wire, t: str) -> Conversation:
    """ConsumerGroupHeartbeat, ConsumerGroupDescribe, and what the older requests make of such groups."""
    topic = f"{t}t"
    topic_id = create_topic(wire, topic, 2)
    ready(wire, t)
    for version in versions(68):
        yield from _malformed(t, topic, version)
    yield from _patterns(t)
    yield from _epochs(f"{t}c", topic, topic_id)
    yield from _instances(t, topic)
    yield from _older_requests(t, f"{t}c", topic, topic_id)


def _malformed(t: str, topic: str, version: int) -> Conversation:
    group, owned = f"{t}bad", m.ConsumerGroupHeartbeatRequest.TopicPartitions(UNKNOWN_ID, [0])
    for label, request in (
        ("no group", beat("", "a", 0)),
        ("blank group", beat(" ", "a", 0)),
        ("no member", beat(group, "", 1)),
        ("no member leaves", beat(group, "", -1)),
        ("blank member", beat(group, " ", 1)),
        ("blank instance", beat(group, "a", 0, instance_id="")),
        ("blank rack", beat(group, "a", 0, rack_id=" ")),
        ("no timeout", beat(group, "a", 0, rebalance_timeout_ms=-1)),
        ("partitions unknown", beat(group, "a", 0, topic_partitions=None)),
        ("partitions owned", beat(group, "a", 0, topic_partitions=[owned])),
        ("no subscription", beat(group, "a", 0, subscribed_topic_names=None)),
        ("no such assignor", beat(group, "a", 0, server_assignor="nonsense")),
        ("epoch -3", beat(group, "a", -3)),
        ("leaves for now without a name", beat(group, "a", -2)),
        ("no such group", beat(f"{t}none", "a", 5)),
        ("leaves no such group", beat(f"{t}none", "a", -1)),
    ):
        yield Step(f"beat: {label}", request, version)


def _patterns(t: str) -> Conversation:
    for number, pattern in enumerate(PATTERNS):
        group = f"{t}p{number}"
        asked = beat(group, "a", 0, subscribed_topic_names=None, subscribed_topic_regex=pattern)
        yield Step(f"pattern: {pattern}", asked, 1)
    for pattern in BOMBS:
        # Not under the conversation's prefix: only one of the servers has such a group afterwards.
        asked = beat(f"bomb-{t}", "a", 0, subscribed_topic_names=None, subscribed_topic_regex=pattern)
        yield Step(f"bomb: {pattern}", asked, 1)


def _epochs(group: str, topic: str, topic_id: bytes) -> Conversation:
    def owned(*partitions: int) -> list[Any]:
        return [m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id, list(partitions))]

    joined = yield Step("member: joins", beat(group, "a", 0, subscribed_topic_names=[topic]), 1)
    epoch = joined.member_epoch
    yield Step("member: reports", beat(group, "a", epoch, topic_partitions=owned(0, 1)), 1)
    yield Step("member: the epoch before", beat(group, "a", epoch - 1, topic_partitions=owned(0, 1)), 1)
    yield Step("member: the epoch before, no word of partitions", beat(group, "a", epoch - 1), 1)
    yield Step("member: an epoch to come", beat(group, "a", epoch + 1), 1)
    yield Step("member: joins again", beat(group, "a", 0, subscribed_topic_names=[topic]), 1)
    yield Step("member: a stranger", beat(group, NOBODY, epoch), 1)
    yield Step("member: a stranger leaves", beat(group, NOBODY, -1), 1)
    yield Step("member: a name nobody has", beat(group, "a", epoch, instance_id="i"), 1)
    for version in versions(69):
        asked = m.ConsumerGroupDescribeRequest([group, f"{group}none", ""], include_authorized_operations=True)
        yield Step("member: described", asked, version)


def _instances(t: str, topic: str) -> Conversation:
    group = f"{t}i"
    first = yield Step("instance: joins", beat(group, "a", 0, instance_id="i", subscribed_topic_names=[topic]), 1)
    yield Step("instance: is taken", beat(group, "b", 0, instance_id="i", subscribed_topic_names=[topic]), 1)
    yield Step("instance: another's", beat(group, "b", first.member_epoch, instance_id="i"), 1)
    yield Step("instance: another leaves", beat(group, "b", -2, instance_id="i"), 1)
    yield Step("instance: leaves for now", beat(group, "a", -2, instance_id="i"), 1)
    yield Step("instance: comes back", beat(group, "b", 0, instance_id="i", subscribed_topic_names=[topic]), 1)
    yield Step("instance: the first one", beat(group, "a", first.member_epoch, instance_id="i"), 1)
    yield Step("instance: leaves", beat(group, "b", -1, instance_id="i"), 1)
    yield Step("instance: described", m.ConsumerGroupDescribeRequest([group]), 1)


def _older_requests(t: str, group: str, topic: str, topic_id: bytes) -> Conversation:
    described = yield Step("older: described", m.ConsumerGroupDescribeRequest([group]), 1)
    epoch = described.groups[0].members[0].member_epoch
    for version in versions(8):
        for label, given in (("now", epoch), ("before", epoch - 1), ("long ago", 0), ("to come", epoch + 1)):
            asked = commit(group, topic, topic_id, version, member="a", generation=given)
            yield Step(f"older: commit of {label}", asked, version)
        yield Step("older: commit of a stranger", commit(group, topic, topic_id, version, member=NOBODY,
                                                         generation=epoch), version)  # fmt: skip
        yield Step("older: commit from outside", commit(group, topic, topic_id, version), version)
    for version in (9, 10):
        for member, given in (("a", epoch), ("a", epoch - 1), ("a", epoch + 1), (NOBODY, epoch)):
            asked_back = fetch(group, topic, topic_id, version, member_id=member, member_epoch=given)
            yield Step(f"older: fetch of {member} {given - epoch:+}", asked_back, version)
    yield Step("older: describe", m.DescribeGroupsRequest([group]), 5)
    yield Step("older: describe", m.DescribeGroupsRequest([group]), 6)
    yield Step("older: list", m.ListGroupsRequest([], ["consumer"]), 5)
    yield Step("older: heartbeat", m.HeartbeatRequest(group, epoch, "a"), 4)
    yield Step("older: sync", sync(group, "a", epoch), 5)
    yield Step("older: leave", leave(group, m.LeaveGroupRequest.MemberIdentity("a")), 5)
    yield Step("older: join with another type", join(group, protocol_type="connect"), 9)
    yield Step("older: delete", m.DeleteGroupsRequest([group]), 2)
    yield Step("older: leaves", beat(group, "a", -1), 1)
    yield Step("older: delete", m.DeleteGroupsRequest([group, f"{t}i"]), 2)


GROUP_CONVERSATIONS = {"classic groups": classic, "offsets": offsets, "consumer groups": consumer}
