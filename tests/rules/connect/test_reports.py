"""What a task tells of its failure."""

from ottla.client.errors import Unreachable
from ottla.connect.jobs.reports import Failed
from ottla.model.errors import Errors


def test_a_broker_that_is_away_is_told_without_the_place_in_our_code_where_it_was_missed() -> None:
    away = Unreachable({"127.0.0.1:9092": "nothing listens there"})
    told = "no broker could be reached: 127.0.0.1:9092: nothing listens there"
    assert Failed.of(away, ()) == Failed(told, "", int(Errors.NETWORK_EXCEPTION))


def test_what_a_connector_raises_is_told_with_the_place_where_it_did() -> None:
    try:
        int("missing")
    except ValueError as error:
        failed = Failed.of(error, ())
    assert failed.text.endswith("'missing'")
    assert "test_reports.py" in failed.trace
