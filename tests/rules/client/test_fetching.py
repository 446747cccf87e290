"""What is fetched is given once, whatever else goes wrong. No socket, no clock."""

from ottla.client.errors import KafkaError
from ottla.client.fetching import Fetching
from ottla.client.steps import Ask
from ottla.model.errors import Errors
from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch
from tests.rules.client.test_routing import OTHER, PLACE, Reply, described, routing, run


def answer(ask: Ask, _: float) -> Reply:
    assert ask.kind is m.MetadataRequest
    return described(1, 1)


def test_records_beside_an_error_are_given_by_the_next_poll() -> None:
    """The first partition is read, the second refused for good in the same response: its error is raised, and what the
    first gave is behind its position by then."""
    routes = routing()
    fetching = Fetching({PLACE: (0, 1), OTHER: (0, 1)})
    (asked,) = run(fetching.asks(routes), answer).result
    kind = m.FetchResponse
    records = bytes(build_batch([NewRecord(None, b"kept", 1)]))
    parts = [
        kind.PartitionData(partition_index=0, high_watermark=1, records=records),
        kind.PartitionData(partition_index=1, error_code=Errors.TOPIC_AUTHORIZATION_FAILED),
    ]
    response = kind(responses=[kind.FetchableTopicResponse(topic="orders", partitions=parts)])
    assert isinstance(run(fetching.heard(routes, asked, response), answer).result, KafkaError)
    assert fetching.positions() == {PLACE: 1, OTHER: 0}
    (given,) = fetching.taken()
    assert [record.value for record in given.records] == [b"kept"]
    assert fetching.taken() == []
