"""Short versions of `make faults`: three nodes under load through the faults that every release must survive.

The long ones, those over SASL_SSL, and the same against Apache Kafka, are run by hand: docs/RELIABILITY.md.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.run import Outcome, Plan, carry_out, table


def short(fault: str, strikes: int, seed: int) -> Plan:
    return Plan(faults=(fault,), strikes=strikes, seed=seed, seconds=25, rate=600, partitions=3, rest_s=(0.3, 1.0))


def went_well(outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{table(outcome)}")
    assert outcome.good, table(outcome)
    assert not outcome.failed_sends
    assert outcome.verdict.acknowledged > 1000, "the load was too small to show anything"


def test_kill_nine_of_leaders_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = carry_out(replace(short("kill", 2, seed=11), clients=("librdkafka", "java", "go")), tmp_path)
    went_well(outcome, capsys)
    assert max(outcome.worst_waits) < 8, "no faster than Apache Kafka, which takes its session timeout"


def test_a_rolling_restart_fails_no_send(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = carry_out(short("rolling", 1, seed=12), tmp_path)
    went_well(outcome, capsys)
    assert outcome.latency_ms(0.99) < 10_000  # the aim is 1000, on a machine that does nothing else


def test_a_paused_leader_that_goes_on_acknowledges_nothing_that_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = carry_out(short("pause", 1, seed=13), tmp_path)
    went_well(outcome, capsys)


@pytest.mark.matrix
def test_kills_and_pauses_lose_nothing_where_all_is_encrypted_and_everybody_logs_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = replace(
        short("kill", 2, seed=15), faults=("kill", "pause"), clients=("librdkafka", "java", "go"), secured=True
    )
    went_well(carry_out(plan, tmp_path), capsys)


@pytest.mark.matrix
def test_cut_links_lose_nothing_where_all_is_encrypted_and_everybody_logs_in_again_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node or a client that comes back has to log in again, and its login may have ended meanwhile."""
    plan = replace(
        short("partition", 3, seed=16), seconds=120, secured=True, extra={"connections.max.reauth.ms": "3000"}
    )
    went_well(carry_out(plan, tmp_path), capsys)


def test_loss_is_found_where_there_must_be_some(tmp_path: Path) -> None:
    """A harness that finds nothing proves nothing. acks=1, and a leader that dies while its followers are stopped."""
    plan = replace(short("strand", 1, seed=14), acks="1", copy=False)
    outcome = carry_out(plan, tmp_path)
    assert {"lost-write", "unseen"} <= outcome.verdict.legal.keys(), table(outcome)
