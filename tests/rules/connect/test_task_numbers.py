"""Connect's metrics of a task and of a worker, as they are counted."""

from ottla.connect.counts import Rebalances, Startups, WorkerCounts
from ottla.connect.dead_letters import LetterPolicy
from ottla.connect.jobs.account import Account, Outcome
from ottla.connect.jobs.reports import Calls, Counts, SinkReport, SourceReport
from ottla.connect.jobs.task_numbers import TaskNumbers

ERRORS = {
    "total-record-failures": 0,
    "total-record-errors": 0,
    "total-records-skipped": 0,
    "total-retries": 0,
    "total-errors-logged": 0,
    "deadletterqueue-produce-requests": 0,
    "deadletterqueue-produce-failures": 0,
    "last-error-timestamp": 0,
}


def test_a_task_that_has_done_nothing_tells_no_averages() -> None:
    assert TaskNumbers(is_source=True).told(0) == {
        "source-record-poll-total": 0,
        "source-record-write-total": 0,
        **ERRORS,
    }


def test_a_source_tells_its_transactions_and_how_long_it_reads() -> None:
    task = TaskNumbers(is_source=True)
    task.take(SourceReport(0, Counts(10, 9), calls=Calls(2, 30, 20)), 5, 1000, logs=False)
    task.take(SourceReport(0, Counts(2, 1), calls=Calls(1, 3, 3)), 15, 2000, logs=False)
    assert task.told(2000) == {
        "source-record-poll-total": 12,
        "source-record-write-total": 10,
        **ERRORS,
        "batch-size-avg": 6,
        "batch-size-max": 10,
        "offset-commit-avg-time-ms": 10,
        "offset-commit-max-time-ms": 15,
        "poll-batch-avg-time-ms": 11,
        "poll-batch-max-time-ms": 20,
        "transaction-size-avg": 5,
        "transaction-size-min": 1,
        "transaction-size-max": 9,
    }


def test_a_sink_tells_its_commits_its_writes_and_what_was_no_good() -> None:
    task = TaskNumbers(is_source=False)
    task.take(SinkReport(0, Counts(10, 7, 1, 2, 3, 2), calls=Calls(1, 30, 30)), 5, 1000, logs=True)
    found = task.told(1000)
    assert {name: found[name] for name in found if not name.startswith("batch-size")} == {
        "sink-record-read-total": 10,
        "sink-record-send-total": 7,
        "offset-commit-completion-total": 1,
        "offset-commit-seq-no": 1,
        "total-record-failures": 2,
        "total-record-errors": 2,
        "total-records-skipped": 2,
        "total-retries": 3,
        "total-errors-logged": 2,
        "deadletterqueue-produce-requests": 2,
        "deadletterqueue-produce-failures": 0,
        "last-error-timestamp": 1000,
        "offset-commit-avg-time-ms": 5,
        "offset-commit-max-time-ms": 5,
        "put-batch-avg-time-ms": 30,
        "put-batch-max-time-ms": 30,
    }


def test_each_task_of_a_connector_has_its_own_numbers_and_no_letters_without_a_topic_for_them() -> None:
    account = Account("c", LetterPolicy(), ())
    reports = [SinkReport(1, Counts(5, 5)), SinkReport(0, Counts(3, 2, 0, 1, 0, 1))]
    account.take(Outcome(Counts(), ()), reports, 1.0)
    tasks = account.told()["tasks"]
    assert [(task, each["sink-record-read-total"]) for task, each in tasks.items()] == [("0", 3), ("1", 5)]
    assert tasks["0"]["deadletterqueue-produce-requests"] == 0


def test_a_start_ends_when_the_connector_runs_or_fails_before() -> None:
    counts = WorkerCounts()
    counts.starts("a", 1, 3)
    counts.runs("a", 1)
    counts.fails("a", 1)  # it had begun
    counts.starts("b", 2, 1)
    counts.runs("b", 1)  # a former life
    counts.fails("b", 2)
    counts.starts("c", 3, 1)
    assert (counts.connectors, counts.tasks) == (Startups(3, 1, 1), Startups(5, 3, 1))


def test_a_rebalance_lasts_from_when_the_worker_gets_ready_until_it_has_its_part() -> None:
    found = Rebalances()
    found.begins(1000)
    found.begins(1500)  # once more before it has come to its end
    found.ends(3000)
    found.begins(5000)
    assert found == Rebalances(completed=1, total_ms=2000, most_ms=2000, ended_ms=3000, began_ms=5000)
