"""What Apache's tools print is read to the digit, and a short run is never taken for a whole one."""

import pytest

from bench.java_tools import (
    LatencyRun,
    ProducerRun,
    ToolFailed,
    TransactionRun,
    read_consumer_rate,
    read_latency_run,
    read_producer_run,
    read_transaction_run,
)

WHOLE = (
    "300000 records sent, 61050.061050 records/sec (59.62 MB/sec), 453.17 ms avg latency, 871.00 ms max latency, "
    "451 ms 50th, 612 ms 95th, 643 ms 99th, 700 ms 99.9th.\n"
)
STEADY = (
    "240000 steady state records sent, 70000.5 records/sec (68.36 MB/sec), 400.25 ms avg latency, "
    "600.00 ms max latency, 399 ms 50th, 500 ms 95th, 550 ms 99th, 590 ms 99.9th.\n"
)
READ = (
    "2026-01-01 00:00:00:000, 2026-01-01 00:00:02:000, "
    "292.9688, 146.4844, 300000, 150000.0, 500, 1500, 195.31, 200000.0"
)


def test_the_steady_summary_counts() -> None:
    assert read_producer_run(WHOLE + STEADY, 300_000) == ProducerRun(70000.5, 400.25, 399.0, 550.0)


def test_the_only_summary_counts_where_there_was_no_warm_up() -> None:
    assert read_producer_run(WHOLE, 300_000) == ProducerRun(61050.06105, 453.17, 451.0, 643.0)


def test_records_that_were_not_acknowledged_fail_the_run() -> None:
    with pytest.raises(ToolFailed):
        read_producer_run(WHOLE + STEADY, 300_001)


def test_the_time_to_join_a_group_is_not_counted() -> None:
    assert read_consumer_rate(READ, 300_000) == 200_000.0


def test_a_consumer_that_gave_up_fails_the_run() -> None:
    with pytest.raises(ToolFailed):
        read_consumer_rate("WARNING: Exiting before consuming the expected number of records\n" + READ, 300_001)


def test_latency_is_read_with_its_percentiles() -> None:
    printed = "0\t80.1\n1000\t0.9\nAvg latency: 1.2345 ms\nPercentiles: 50th = 1, 99th = 7, 99.9th = 20\n"
    assert read_latency_run(printed) == LatencyRun(1.2345, 1.0, 7.0)


def test_latency_without_percentiles_fails_the_run() -> None:
    with pytest.raises(ToolFailed):
        read_latency_run("Avg latency: 1.2345 ms\n")


def test_transactions_are_counted_by_the_second() -> None:
    printed = "800 transactions, 4.000000 s, p50 4.125 ms, p99 9.500 ms\n"
    assert read_transaction_run(printed, 800) == TransactionRun(200.0, 4.125, 9.5)


def test_transactions_that_were_not_committed_fail_the_run() -> None:
    with pytest.raises(ToolFailed):
        read_transaction_run("799 transactions, 4.000000 s, p50 4.125 ms, p99 9.500 ms\n", 800)
