"""What went wrong is followed by what to do."""

import pytest

from ottla.cli.failures import explain
from ottla.client.errors import KafkaError
from ottla.model.errors import Errors
from ottla.protocol.codec import EncodeError
from ottla.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest


@pytest.mark.parametrize("code", [29, 30, 31, 53, 54, 61, 62, 63, 64, 65, 66, 67])
def test_a_refusal_of_rights_or_tokens_says_what_to_do(code: int) -> None:
    what, _, advice = explain(KafkaError(Errors(code), "it")).partition("\n")
    assert what
    assert advice.strip()


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (
            CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic("x", 1 << 40)]),
            "a number is too large, or too small, for Kafka's protocol: -2147483648 <= it <= 2147483647 is needed",
        ),
        (DeleteTopicsRequest(topic_names=["x" * 40_000]), "a string of 40000 bytes is longer than Kafka's 32767"),
    ],
)
def test_what_the_protocol_has_no_room_for_is_no_defect(
    request_: CreateTopicsRequest | DeleteTopicsRequest, told: str
) -> None:
    with pytest.raises(EncodeError) as raised:
        request_.encode(5)
    assert explain(raised.value).endswith(told)
