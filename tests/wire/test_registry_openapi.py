"""The registry beside its own OpenAPI document: whatever schemathesis makes of it, no answer is a failure of ours, and
each is one that the document tells of."""

from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from ottla.registry.languages import LANGUAGES
from ottla.testing import Cluster
from tests.support.registries import Registry

AS_DOCUMENTED: list[Any] = [
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.status_code_conformance,
]
EXAMPLES = 6
"""Of each operation, that fit the document, and as many that break it."""


@pytest.mark.matrix
def test_no_request_that_fits_the_document_or_breaks_it_makes_the_server_fail() -> None:
    with (
        Cluster(1, transaction_state_log_num_partitions=1) as kafka,
        Registry(kafka.bootstrap_servers, languages=LANGUAGES) as registry,
    ):
        document = schemathesis.openapi.from_url(f"{registry.url}/openapi.json")
        found: list[Any] = list(document.get_all_operations())
        operations = [each.ok() for each in found]
        assert len(operations) > 35
        for operation in operations:
            for mode in GenerationMode:
                _ask(operation, mode)
        assert registry.ask("GET", "/subjects")[0] == 200


def _ask(operation: Any, mode: GenerationMode) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def probe(case: Any) -> None:
        response = case.call(timeout=60)
        assert response.status_code < 500, (case.as_curl_command(), response.text)
        case.validate_response(response, checks=AS_DOCUMENTED)

    with suppress(Unsatisfiable):  # some requests cannot break anything
        probe()
