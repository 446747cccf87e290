"""Commits that are packed together are, to the byte, the records that their schemas write one by one."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group.commits import Commits
from ottla.coordinator.group.committed import Offsets
from ottla.coordinator.records import Decoder, encode
from ottla.protocol import messages
from ottla.protocol.batch import plain_batch
from ottla.protocol.records import build_batch, read_records

NOW = 1_700_000_000_000

Asked = list[tuple[str, bytes, list[tuple[int, int, int]]]]
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=90)
rows = st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1))
topics = st.lists(
    st.tuples(names, st.sampled_from([bytes(16), bytes(range(16))]), st.lists(rows, min_size=1, max_size=70)),
    min_size=1,
    max_size=3,
)


@given(names, topics, st.booleans(), st.sampled_from([-1, NOW + 5]))
def test_packed_records_are_those_of_the_schemas(group: str, asked: Asked, with_metadata: bool, expires: int) -> None:
    metadata = {(asked[0][0], asked[0][2][0][0]): "mine"} if with_metadata else {}
    commits = Commits(group, asked, NOW, metadata, expires)
    one_by_one = build_batch([encode(record, NOW) for record in commits.records()])
    assert plain_batch(commits.body(), commits.count, NOW) == one_by_one


@given(names, topics)
def test_replaying_them_together_is_replaying_what_the_log_gives_back(group: str, asked: Asked) -> None:
    commits = Commits(group, asked, NOW)
    together, one_by_one = Offsets(), Offsets()
    together.replay_commits(commits, 7)
    decoder = Decoder(messages.GROUP_RECORDS)
    for record in read_records(plain_batch(commits.body(), commits.count, NOW)):
        decoded = decoder.decode(record.key, record.value)
        assert decoded is not None and isinstance(decoded.key, messages.OffsetCommitKey)
        assert isinstance(decoded.value, messages.OffsetCommitValue)
        one_by_one.replay(decoded.key, decoded.value, 7 + record.offset, -1)
    assert together.by_group == one_by_one.by_group


def test_offsets_that_take_two_bytes_to_count_are_counted() -> None:
    commits = Commits("g", [("t", bytes(16), [(index, index, 0) for index in range(300)])], NOW)
    read = list(read_records(plain_batch(commits.body(), commits.count, NOW)))
    assert [record.offset for record in read] == list(range(300))
