"""What `ottla streams` says."""

from ottla.cli.streams import summary


def test_a_run_ends_with_what_it_did() -> None:
    one = {"read": 1, "written": 10, "dropped-by-reason": {}}
    assert summary({"queries": [one]}) == "1 record read, 10 written, changelogs included"


def test_and_with_what_it_left_out_and_why() -> None:
    first = {"read": 4, "written": 2, "dropped-by-reason": {"null-key": 1, "late-record": 2}}
    second = {"read": 2, "written": 2, "dropped-by-reason": {"late-record": 1}}
    assert summary({"queries": [first, second]}) == (
        "6 records read, 4 written, changelogs included; left out: 3 late-record, 1 null-key"
    )
