"""What a config provider gave is in no log, no trace and no dead letter of the connector that it was given to."""

import logging
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from ottla.connect import spi
from ottla.connect.dead_letters import MOST_TRACE, Failure, LetterPolicy, Stage, letter_headers
from ottla.connect.jobs.account import Account, Outcome
from ottla.connect.jobs.reports import Counts, Failed
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import Columns

SECRET = "hunter2"
TEXTS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


class Telling(spi.Sink[spi.Config]):
    """Says its password in everything that it says."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__(spi.Config(), "telling")
        self._fails = fails

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        if self._fails:
            raise spi.ConnectorFailed(f"http://there/?key={SECRET} answered 401")
        return [spi.Refused(0, spi.BadRecord(f"the server does not like {SECRET}")), spi.Refused(1, SECRET)]


def spec(**config: str) -> JobSpec:
    given = {"connector.class": "FileStreamSink", **config}
    return JobSpec("telling", given, "", "", "", "", TEXTS, secrets=[SECRET])


def two_records() -> Iterator[Columns]:
    texts = pa.array([b"a", b"b"], pa.binary())
    yield Columns("t", 0, texts, texts, np.array([0, 1]), np.array([0, 0]), None)


def test_letters_do_not_have_it_and_neither_has_the_log_of_them(caplog: pytest.LogCaptureFixture) -> None:
    given = spec(**{"errors.tolerance": "all", "errors.log.enable": "true"})
    report = SinkTask(given, Telling()).run(0, [spi.Span("t", 0, 0, 2)], two_records())
    assert [letter.failure.message for letter in report.letters] == ["the server does not like [hidden]", "[hidden]"]
    assert all(SECRET not in str(letter_headers(letter, "telling", 0)) for letter in report.letters)
    account = Account("telling", given.policy, given.secrets)
    account.take(Outcome(Counts(), (), report.letters))
    account.alert([f"slow: {SECRET} is far behind"])
    assert SECRET not in caplog.text
    assert "does not like [hidden]" in caplog.text
    assert "slow: [hidden] is far behind" in caplog.text


def test_what_a_task_tells_of_its_failure_does_not_have_it() -> None:
    failed = SinkTask(spec(), Telling(fails=True)).run(0, [spi.Span("t", 0, 0, 2)], two_records()).failed
    assert failed is not None
    assert failed.text.endswith("http://there/?key=[hidden] answered 401")
    assert SECRET not in failed.trace


def test_a_record_that_is_not_tolerated_does_not_tell_it() -> None:
    failed = SinkTask(spec(), Telling()).run(0, [spi.Span("t", 0, 0, 2)], two_records()).failed
    assert failed is not None
    assert "[hidden]" in failed.text
    assert SECRET not in failed.text + failed.trace


@pytest.mark.parametrize("beyond", range(-10, 10))
def test_a_trace_that_is_too_long_is_not_cut_in_the_midst_of_it(beyond: int) -> None:
    error = spi.BadRecord(SECRET + "." * (MOST_TRACE - beyond))
    for trace in (Failure.of(Stage.TASK_PUT, "c", error, [SECRET]).trace, Failed.of(error, [SECRET]).trace):
        assert "ter2" not in trace


def test_a_policy_without_a_log_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    Account("quiet", LetterPolicy(), ()).take(Outcome(Counts(), ()))
    assert caplog.text == ""
