"""What `ottla streams` says."""

import os
from pathlib import Path

from ottla.cli.streams.progress import Rates, line
from ottla.cli.streams.run import summary
from ottla.cli.streams.status import doing
from ottla.cli.streams.watch import changed_at
from ottla.streams.run.state_directory import StateDirectory


def test_a_run_ends_with_what_it_did() -> None:
    one = {"read": 1, "written": 10, "dropped-by-reason": {}}
    assert summary({"queries": [one]}) == "1 record read, 10 written, changelogs included"


def test_and_with_what_it_left_out_and_why() -> None:
    first = {"read": 4, "written": 2, "dropped-by-reason": {"null-key": 1, "late-record": 2}}
    second = {"read": 2, "written": 2, "dropped-by-reason": {"late-record": 1}}
    assert summary({"queries": [first, second]}) == (
        "6 records read, 4 written, changelogs included; left out: 3 late-record, 1 null-key"
    )


# ---- while it runs

QUERY = {"read": 100, "written": 40, "batches": 3, "lag": 7, "state-bytes": 2048}


def test_before_the_first_batch_the_line_says_what_it_waits_for() -> None:
    status = {"state": "REBALANCING", "waits-for": "Spark to start", "queries": []}
    assert line(status, (0.0, 0.0)) == "REBALANCING: waits for Spark to start"


def test_then_it_tells_batches_rates_lag_and_state() -> None:
    status = {"state": "RUNNING", "waits-for": "records", "queries": [QUERY, {**QUERY, "batches": 1, "lag": None}]}
    assert line(status, (1250.0, 12.4)) == (
        "RUNNING, 4 batches: 1,250 records/s read, 12 written, lag 7, state 4.0 KiB; waits for records"
    )


def test_rates_are_differences_of_the_last_seconds() -> None:
    rates = Rates()
    looks = [(0.0, 0), (1.0, 100), (2.0, 300), (8.0, 300), (9.0, 400)]
    told = [rates.of({"queries": [{"read": read, "written": 2 * read}]}, at) for at, read in looks]
    assert told == [(0.0, 0.0), (100.0, 200.0), (150.0, 300.0), (0.0, 0.0), (100.0, 200.0)]


def test_top_shows_what_each_application_told(tmp_path: Path) -> None:
    for name in ("asleep", "busy"):
        with StateDirectory(str(tmp_path), name).held({}):
            pass
    directory = StateDirectory(str(tmp_path), "busy")
    with directory.held({}):
        directory.tell({"state": "RUNNING", "waits-for": "records", "queries": [QUERY]})
        table = doing(str(tmp_path), {})
    assert table.rows == [
        ("busy", os.getpid(), "RUNNING", 3, 0, 0, 7, "2.0 KiB", "records"),
        ("asleep", None, None, None, None, None, None, None, None),
    ]


def test_a_changed_module_beside_the_file_is_seen(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text("")
    before = changed_at(str(app))
    (tmp_path / "rates.py").write_text("")
    assert changed_at(str(app)) != before
