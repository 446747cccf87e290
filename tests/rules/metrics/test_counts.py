"""What is counted beside the code that does it."""

from ottla.metrics.counts import QuorumCounts, ReplicaCounts, RequestCounts, TopicCounts


def test_what_a_forgotten_topic_has_counted_stays_in_the_sum_over_all() -> None:
    forgotten, gone = TopicCounts(), TopicCounts()
    for field in TopicCounts.__slots__:
        setattr(gone, field, 5)
    forgotten.add(gone)
    forgotten.add(gone)
    assert {field: getattr(forgotten, field) for field in TopicCounts.__slots__} == dict.fromkeys(
        TopicCounts.__slots__, 10
    )


def test_replicas_in_sync_that_become_fewer_are_a_shrink_and_more_an_expand() -> None:
    counts = ReplicaCounts()
    counts.isr_changed(3, 2)
    counts.isr_changed(2, 3)
    counts.isr_changed(2, 3)
    counts.isr_changed(3, 3)
    assert (counts.isr_shrinks, counts.isr_expands) == (1, 2)


def test_errors_are_counted_by_code() -> None:
    counts = RequestCounts(0, 4, has_error_code=True)
    for code in (3, 3, 15):
        counts.failed(code)
    assert counts.errors == {3: 2, 15: 1}


def test_one_append_at_a_time_is_followed_to_its_commit() -> None:
    counts = QuorumCounts()
    counts.appended_as_leader(3, last_offset=12, now=100)
    counts.appended_as_leader(2, last_offset=14, now=105)
    counts.committed(12, now=106)  # the high watermark is the offset behind the last one committed
    assert (counts.commits, counts.commit_ms) == (0, 0)
    counts.committed(13, now=107)
    counts.appended_as_leader(1, last_offset=15, now=200)
    counts.committed(16, now=202)
    assert (counts.appended, counts.commits, counts.commit_ms, counts.commit_ms_max) == (6, 2, 9, 7)
