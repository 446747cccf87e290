"""When offsets are synced, and what syncs translate."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.mirror.formats import OffsetSync
from ottla.mirror.syncs import KEPT, PartitionSyncs, SyncStore


def test_the_first_copy_a_gap_a_truncation_and_a_hundred_records_are_worth_a_sync() -> None:
    partition = PartitionSyncs(max_offset_lag=100)
    assert partition.copied(10, 0)  # the first of this life
    assert not partition.copied(11, 1)
    assert partition.copied(20, 2)  # upstream, records were left out
    assert not partition.copied(21, 3)
    assert partition.copied(22, 1)  # the target's topic was made anew
    assert [n for n in range(1, 103) if partition.copied(22 + n, 1 + n)] == [101]


@given(
    st.integers(1, 20),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 60)), max_size=12),
)
def test_a_span_of_records_syncs_what_its_records_would(lag: int, spans: list[tuple[int, int, int]]) -> None:
    by_record, by_span = PartitionSyncs(lag), PartitionSyncs(lag)
    upstream = downstream = 0
    for gap, downstream_gap, count in spans:
        upstream += gap
        downstream += downstream_gap
        pairs = [(upstream + n, downstream + n) for n in range(count)]
        one_by_one = [pair for pair in pairs if by_record.copied(*pair)]
        assert by_span.copied_span(upstream, downstream, count) == one_by_one
        assert by_span == by_record
        upstream += count
        downstream += count


def _store(*pairs: tuple[int, int]) -> SyncStore:
    store = SyncStore(complete=True)
    for upstream, downstream in pairs:
        store.replay(OffsetSync("t", 0, upstream, downstream))
    return store


def test_an_offset_is_exact_at_a_sync_and_one_past_it_behind() -> None:
    store = _store((100, 50), (200, 120))
    assert store.translate("t", 0, 200) == 120
    assert store.translate("t", 0, 201) == store.translate("t", 0, 10_000) == 121
    assert store.translate("t", 0, 100) == 50
    assert store.translate("t", 0, 150) == 51


def test_a_group_behind_the_first_sync_cannot_be_translated() -> None:
    assert _store((100, 50)).translate("t", 0, 99) == -1
    assert _store((100, 50)).translate("other", 0, 99) is None


def test_nothing_is_translated_before_the_topic_was_read_to_its_end() -> None:
    store = SyncStore()
    store.replay(OffsetSync("t", 0, 1, 1))
    assert store.translate("t", 0, 1) is None


def test_at_the_start_only_the_last_sync_counts_unless_checkpoints_were_read() -> None:
    for keeps_history, expected in ((False, -1), (True, 11)):
        store = SyncStore(keeps_history=keeps_history)
        for offset in (10, 1000, 2000):
            store.replay(OffsetSync("t", 0, offset, offset))
        store.complete = True
        assert store.translate("t", 0, 20) == expected


def test_a_source_that_was_made_anew_makes_all_older_syncs_worthless() -> None:
    store = _store((100, 50), (200, 120), (5, 130))
    assert store.kept("t", 0) == [OffsetSync("t", 0, 5, 130)]
    assert store.translate("t", 0, 250) == 131


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=120), st.data())
def test_translation_never_skips_a_record_and_is_monotonic(steps: list[int], data: st.DataObject) -> None:
    """Half of the records upstream are copied, at random; a reader that begins at the translated offset has every copy
    of a record that it had not read."""
    store = SyncStore(complete=True)
    upstream = 0
    truth = []  # (upstream, downstream) of each sync
    downstream = 0
    for step in steps:
        upstream += step
        downstream += data.draw(st.integers(1, step))
        truth.append((upstream, downstream))
        store.replay(OffsetSync("t", 0, upstream, downstream))
    asked = sorted(data.draw(st.lists(st.integers(0, upstream + 10), max_size=20)))
    answers = [store.translate("t", 0, offset) for offset in asked]
    known = [answer for answer in answers if answer is not None and answer >= 0]
    assert known == sorted(known)
    for offset, answer in zip(asked, answers, strict=True):
        following = [here for there, here in truth if there >= offset]
        assert answer is not None
        if answer >= 0 and following:
            assert answer <= following[0]


@given(st.lists(st.integers(1, 1 << 40), min_size=1, max_size=200))
def test_syncs_are_kept_close_together_at_the_end_and_far_apart_in_the_past(steps: list[int]) -> None:
    store = SyncStore(complete=True)
    upstream = 0
    for step in steps:
        upstream += step
        store.replay(OffsetSync("t", 0, upstream, upstream))
    syncs = store._syncs["t", 0]
    assert len(syncs) == KEPT
    assert syncs[0].upstream_offset == upstream
    for i in range(KEPT - 1):
        newer, older = syncs[i], syncs[i + 1]
        assert newer is older or newer.upstream_offset <= older.upstream_offset + (1 << i)
        assert newer is older or newer.upstream_offset >= older.upstream_offset + (1 << max(i - 2, 0))
