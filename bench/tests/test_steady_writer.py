"""When a partition counts as written to again."""

from bench.steady_writer import Sent, SteadyWriter


def writer() -> SteadyWriter:
    return SteadyWriter("127.0.0.1:1", "t", partitions=2, rate=1, size=1)


def test_a_partition_is_written_again_when_it_acknowledges_a_record_sent_after_the_kill() -> None:
    steady = writer()
    steady.sent += [
        Sent(0, 9.0, 10.5, None),  # on its way when the node died: says nothing of the new leader
        Sent(1, 10.25, 10.5, None),
        Sent(0, 10.25, 12.0, None),
        Sent(0, 10.5, 12.5, None),
    ]
    assert steady.written_since(10.0) == {1: 0.5, 0: 2.0}


def test_a_failed_send_is_no_write() -> None:
    steady = writer()
    steady.sent += [Sent(0, 10.25, 11.0, "timed out"), Sent(0, 10.5, 13.0, None)]
    assert steady.written_since(10.0) == {0: 3.0}
