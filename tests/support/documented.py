"""A server beside its own OpenAPI document: whatever schemathesis makes of it, no answer is a failure of the server's,
and each is one that the document tells of."""

from contextlib import suppress
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

AS_DOCUMENTED: list[Any] = [
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.status_code_conformance,
]
EXAMPLES = 6
"""Of each operation, that fit the document, and as many that break it."""


def operations_of(url: str) -> list[Any]:
    found: list[Any] = list(schemathesis.openapi.from_url(f"{url}/openapi.json").get_all_operations())
    return [each.ok() for each in found]


def probe(operation: Any) -> None:
    for mode in GenerationMode:
        _probe(operation, mode)


def _probe(operation: Any, mode: GenerationMode) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def ask(case: Any) -> None:
        response = case.call(timeout=60)
        assert response.status_code < 500, (case.as_curl_command(), response.text)
        case.validate_response(response, checks=AS_DOCUMENTED)

    with suppress(Unsatisfiable):  # some requests cannot break anything
        ask()
