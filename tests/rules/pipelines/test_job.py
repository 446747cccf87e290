"""Jobs as data: what is one, how long it waits after a failure, and that a list of them outlives a crash."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.job import FIRST_PAUSE_S, LONGEST_PAUSE_S, CannotStart, Job, Pauses
from ottla.pipelines.journal import FILE, Journal

COPY = Job("copy", "shop.jobs:copy", {"topic": "orders"})


def test_a_job_is_the_same_after_it_was_written_down() -> None:
    assert Job.of_json(COPY.as_json()) == COPY
    assert Job.of_json({"name": "a", "entry": "m:f"}) == Job("a", "m:f")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (None, "a job is"),
        ([], "a job is"),
        ({"name": "a"}, "a job is"),
        ({"name": "a", "entry": "m:f", "argument": {}}, "a job is"),
        ({"name": "a/b", "entry": "m:f"}, "no name of a job"),
        ({"name": "", "entry": "m:f"}, "no name of a job"),
        ({"name": 7, "entry": "m:f"}, "no name of a job"),
        ({"name": "a", "entry": "m"}, "module:function is expected"),
        ({"name": "a", "entry": ":f"}, "module:function is expected"),
        ({"name": "a", "entry": "m:f", "arguments": []}, "arguments have to be an object"),
    ],
)
def test_what_is_no_job_is_refused_with_what_is_expected(document: Any, reason: str) -> None:
    with pytest.raises(CannotStart, match=reason):
        Job.of_json(document)


def test_arguments_that_json_cannot_have_are_refused() -> None:
    with pytest.raises(CannotStart, match="cannot be written as JSON"):
        Job("a", "m:f", {"file": Path()})


def test_an_entry_is_loaded_or_the_reason_told() -> None:
    assert Job("a", "json:dumps").load().__name__ == "dumps"
    with pytest.raises(CannotStart, match=r"a: no\.such cannot be imported: ModuleNotFoundError"):
        Job("a", "no.such:f").load()
    with pytest.raises(CannotStart, match="a: json has no function loud"):
        Job("a", "json:loud").load()


def test_a_job_that_fails_waits_twice_as_long_each_time_until_it_has_run_for_a_while() -> None:
    pauses = Pauses()
    assert [pauses.after(0.0) for _ in range(8)] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert pauses.after(LONGEST_PAUSE_S) == FIRST_PAUSE_S
    assert pauses.after(5.0) == 2 * FIRST_PAUSE_S


def test_a_host_that_comes_back_finds_its_jobs(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert journal.jobs == []
    journal.put(COPY)
    journal.put(Job("count", "m:f"))
    journal.put(Job("copy", "shop.jobs:copy", {"topic": "returns"}))
    journal.remove("count")
    journal.remove("nobody")
    assert Journal(tmp_path).jobs == [Job("copy", "shop.jobs:copy", {"topic": "returns"})]
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("text", ["", "{", "7", '[{"name": "a"}]'])
def test_a_list_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError, match=r"is no list of jobs: .*; move it away"):
        Journal(tmp_path)


def test_jobs_are_written_down_from_several_threads_and_for_their_owner_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    jobs = [Job(f"job{number}", "module:function") for number in range(64)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(journal.put, jobs))
        list(threads.map(journal.remove, [job.name for job in jobs[:32]]))
    assert {job.name for job in Journal(tmp_path).jobs} == {job.name for job in jobs[32:]}
    assert (tmp_path / "jobs.json").stat().st_mode & 0o777 == 0o600
