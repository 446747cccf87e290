"""What is one transaction of a source (KIP-618), and who may decide it."""

import pytest

from ottla.connect.jobs.boundary import Boundary
from ottla.connect.providers import Providers
from ottla.connect.validation import Judge

FILE = {"name": "a", "connector.class": "FileStreamSource", "file": "/tmp/none", "topic": "t"}


@pytest.mark.parametrize(
    ("config", "gather_ms", "reads_on_after_s"),
    [
        ({}, 0, [True, False, False]),
        ({"transaction.boundary": "POLL"}, 0, [True, False, False]),
        ({"transaction.boundary": "interval"}, 60_000, [True, True, False]),
        ({"transaction.boundary": "interval", "transaction.boundary.interval.ms": "100"}, 100, [True, False, False]),
        ({"transaction.boundary": "connector"}, 0, [False, False, False]),
    ],
)
def test_a_transaction_holds_what_its_boundary_says(
    config: dict[str, str | None], gather_ms: int, reads_on_after_s: list[bool]
) -> None:
    boundary = Boundary.of(config)
    assert boundary.gather_ms == gather_ms
    assert [boundary.may_read_on(after_s) for after_s in (0.5, 2.0, 61.0)] == reads_on_after_s


def test_a_connector_that_defines_no_transactions_is_not_asked_to() -> None:
    judged = Judge({}, Providers({})).judge({**FILE, "transaction.boundary": "connector"})
    (errors,) = [value.errors for _, value in judged.configs if value.name == "transaction.boundary"]
    assert [error for error in errors if "set poll or interval" in error] == list(errors) != []
