"""The door: which keys and versions exist, and that nothing is imported before it is asked for."""

import subprocess
import sys

import pytest

from ottla.protocol import messages
from ottla.protocol.apis import API


def test_kafka_4_3_has_89_keys_and_302_pairs_besides_api_versions_5() -> None:
    assert len(API) == 89
    assert sum(api.max_version - api.min_version + 1 for api in API.values()) == 302 + 1
    assert sorted(API) == [key for key in range(93) if not 4 <= key <= 7]


def test_requests_and_responses_have_the_versions_of_their_key() -> None:
    for api in API.values():
        versions = list(range(api.min_version, api.max_version + 1))
        for cls in (messages.request_class(api.key), messages.response_class(api.key)):
            assert list(cls.DECODERS) == list(cls.ENCODERS) == versions
            assert api.key == cls.API_KEY
        flexible = messages.request_class(api.key).FIRST_FLEXIBLE
        assert api.first_flexible == (None if flexible > 32767 else flexible)


def test_only_init_producer_id_has_an_unstable_version() -> None:
    assert [(api.name, api.stable_max) for api in API.values() if api.latest_unstable] == [("InitProducerId", 5)]
    assert API[0].stable_max == API[0].max_version == 13


def test_keys_know_their_listeners() -> None:
    alone = [key for key, api in API.items() if api.listeners == ("controller",)]
    assert alone == [52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82]
    assert sum("broker" in api.listeners for api in API.values()) == 77


def test_record_types_lead_to_their_classes() -> None:
    assert messages.METADATA_RECORDS[2] is messages.TopicRecord
    assert messages.METADATA_RECORDS.get(6) is None
    assert all(key == cls.API_KEY for key, cls in messages.METADATA_RECORDS.items())
    assert messages.GROUP_RECORDS[1] == ("OffsetCommitKey", "OffsetCommitValue")


def test_a_name_that_kafka_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="LeaderAndIsrRequest"):
        messages.LeaderAndIsrRequest  # noqa: B018
    assert not hasattr(messages, "StopReplicaRequest")


def test_importing_the_door_imports_no_message() -> None:
    program = (
        "import sys; from ottla.protocol import messages; messages.TopicRecord;"
        "print(sorted(m for m in sys.modules if m.startswith('ottla.protocol._generated.')))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "['ottla.protocol._generated.tables', 'ottla.protocol._generated.topic_record']"
