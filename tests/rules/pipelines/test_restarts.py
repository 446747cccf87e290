"""Which failures of a query pass, so that it is started again."""

import pytest

from ottla.pipelines.failures import RESTARTS, Restarts, told

AWAY = """Traceback (most recent call last):
  File "positions.py", line 1, in latest
ottla.client.errors.Unreachable: no broker could be reached: 127.0.0.1:9092: connection refused

=== Streaming Query ==="""
SLOW = "org.apache.spark.SparkException: Python worker failed to connect back."
LOST = "An error occurred while calling o4488.getResult.: ... ExecutorLostFailure (executor 0 exited): Command exited"
OURS = "ottla.streams.errors.StreamsError: [ottla] KSTREAM-MAP-1 failed at in-0 offset 3: TimedOut: mine [end]"


@pytest.mark.parametrize("text", [AWAY, SLOW])
def test_brokers_that_are_away_and_slow_processes_are_waited_for_until_patience_ends(text: str) -> None:
    restarts = Restarts(60.0)
    times = (100.0, 110.0, 120.0, 130.0, 159.0, 160.0)
    assert [restarts.may(Exception(text), now) for now in times] == [True] * 5 + [False]


def test_a_batch_that_is_out_renews_the_patience() -> None:
    restarts = Restarts(60.0)
    assert restarts.may(Exception(AWAY), 100.0)
    restarts.succeeded()
    assert restarts.may(Exception(AWAY), 200.0)


def test_an_executor_that_died_costs_one_of_few_attempts() -> None:
    restarts = Restarts(60.0)
    assert [restarts.may(Exception(LOST), 0.0) for _ in range(RESTARTS + 1)] == [True] * RESTARTS + [False]


@pytest.mark.parametrize("text", [OURS, "ValueError: no", "ottla.client.transacting.Fenced: app-0 has a successor"])
def test_what_does_not_pass_ends_the_query(text: str) -> None:
    assert not Restarts(60.0).may(Exception(text), 0.0)


def test_a_broker_that_is_away_is_told_by_its_address() -> None:
    assert told(Exception(AWAY)) == "no broker could be reached: 127.0.0.1:9092: connection refused"
