"""The short way to read and to answer an OffsetCommit is the long way, where nothing is out of the ordinary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.codec import DecodeError
from ottla.protocol.frames import encode_response
from ottla.protocol.messages import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.ordinary_commit import DECODERS, FIRST_VERSION, CommitAck, OrdinaryCommit

OFFSET_COMMIT = 8
BY_TOPIC_ID = 10
LAST_VERSION = max(OffsetCommitRequest.DECODERS)
SHORT_VERSIONS = range(FIRST_VERSION, LAST_VERSION + 1)

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Partition = OffsetCommitRequest.OffsetCommitRequestPartition

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
partitions = st.builds(
    Partition,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.sampled_from(["", "", "", None, "mine", "m" * 200]),
)
requests = st.builds(
    OffsetCommitRequest,
    group_id=names,
    generation_id_or_member_epoch=st.integers(-1, 2**31 - 1),
    member_id=st.one_of(st.just(""), names),
    group_instance_id=st.one_of(st.none(), names, st.just("")),
    topics=st.lists(st.builds(Topic, names, st.just(bytes(16)), st.lists(partitions, max_size=130)), max_size=3),
)


def encoded(request: OffsetCommitRequest, version: int) -> memoryview:
    for topic in request.topics:
        if version >= BY_TOPIC_ID:
            topic.topic_id, topic.name = topic.name.encode()[:16].ljust(16, b"."), ""
    return memoryview(bytearray(request.encode(version)))


def plain(name: str, *indexes: int) -> OffsetCommitRequest:
    topic = Topic(name, bytes(16), [Partition(index, 7 + index, 3, "") for index in indexes])
    return OffsetCommitRequest("g", 5, "m", None, topics=[topic])


@given(requests, st.sampled_from(SHORT_VERSIONS))
def test_both_ways_read_the_same(request: OffsetCommitRequest, version: int) -> None:
    body = encoded(request, version)
    read, end = DECODERS[version](body, 0)
    in_full, full_end = OffsetCommitRequest.DECODERS[version](body, 0)
    assert end == full_end == len(body)
    if not isinstance(read, OrdinaryCommit):
        assert read == in_full
        return
    assert read.in_full(version) == in_full
    assert (read.group_id, read.generation, read.member_id, read.instance_id) == (
        in_full.group_id,
        in_full.generation_id_or_member_epoch,
        in_full.member_id,
        in_full.group_instance_id,
    )
    assert [(name, [row[:3] for row in rows]) for name, rows in read.topics] == [
        (
            topic.topic_id if version >= BY_TOPIC_ID else topic.name,
            [(one.partition_index, one.committed_offset, one.committed_leader_epoch) for one in topic.partitions],
        )
        for topic in in_full.topics
    ]
    assert not any(one.committed_metadata for topic in in_full.topics for one in topic.partitions)


@pytest.mark.parametrize("version", SHORT_VERSIONS)
def test_what_consumers_send_is_ordinary(version: int) -> None:
    assert isinstance(DECODERS[version](encoded(plain("orders", 0, 1, 2), version), 0)[0], OrdinaryCommit)


@pytest.mark.parametrize("version", SHORT_VERSIONS)
def test_a_request_that_is_cut_short_is_refused_as_ever(version: int) -> None:
    body = encoded(plain("orders", 0, 1, 2), version)
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            DECODERS[version](body[:size], 0)


@pytest.mark.parametrize("version", SHORT_VERSIONS)
def test_the_answer_is_to_the_byte_that_of_the_general_codec(version: int) -> None:
    read = DECODERS[version](encoded(plain("orders", 4, 1, 2), version), 0)[0]
    topic = OffsetCommitResponse.OffsetCommitResponseTopic(
        "orders",
        b"orders".ljust(16, b"."),
        [OffsetCommitResponse.OffsetCommitResponsePartition(index, 0) for index in (4, 1, 2)],
    )
    in_full = OffsetCommitResponse(topics=[topic])
    assert encode_response(OFFSET_COMMIT, version, 9, CommitAck(read.topics)) == encode_response(
        OFFSET_COMMIT, version, 9, in_full
    )
