"""The registry beside its own OpenAPI document."""

import pytest

from ottla.registry.languages import LANGUAGES
from ottla.testing import Cluster
from tests.support.documented import operations_of, probe
from tests.support.registries import Registry


@pytest.mark.matrix
def test_no_request_that_fits_the_document_or_breaks_it_makes_the_server_fail() -> None:
    with (
        Cluster(1, transaction_state_log_num_partitions=1) as kafka,
        Registry(kafka.bootstrap_servers, languages=LANGUAGES) as registry,
    ):
        operations = operations_of(registry.url)
        assert len(operations) > 35
        for operation in operations:
            probe(operation)
        assert registry.ask("GET", "/subjects")[0] == 200
