"""What went wrong is followed by what to do."""

import pytest

from ottla.cli.failures import explain
from ottla.client.errors import KafkaError
from ottla.model.errors import Errors


@pytest.mark.parametrize("code", [29, 30, 31, 53, 54, 61, 62, 63, 64, 65, 66, 67])
def test_a_refusal_of_rights_or_tokens_says_what_to_do(code: int) -> None:
    what, _, advice = explain(KafkaError(Errors(code), "it")).partition("\n")
    assert what
    assert advice.strip()
