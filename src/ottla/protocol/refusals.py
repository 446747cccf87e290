"""The answer that says no to a whole request, in the shape each request has for it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.codec import Message, Request, ResponseT_co


def refused(request: Request[ResponseT_co], error: Errors, text: str | None = None) -> ResponseT_co:
    """The response to `request` in which everything it asked for failed with `error`."""
    by_item = _BY_ITEM.get(request.API_KEY)
    kind: Any = messages.response_class(request.API_KEY)
    response: Any = kind(error_code=error) if by_item is None else by_item(request, error, text or error.text)
    if by_item is None and "error_message" in response.FIELDS:
        response.error_message = text or error.text
    answer: ResponseT_co = response
    return answer


def is_refused_by_item(request: Message) -> bool:
    return request.API_KEY in _BY_ITEM


def can_be_refused(request: Message) -> bool:
    """Whether its answer has a place for an error of the whole that is known here."""
    return is_refused_by_item(request) or "error_code" in messages.response_class(request.API_KEY).FIELDS


def is_refusal(response: Message, error: Errors) -> bool:
    """Whether a whole request failed with that error."""
    code = getattr(response, "error_code", None)
    if code is not None:
        return bool(code == error)
    return any(getattr(item, "error_code", None) == error for item in _items(response))


def _items(response: Message) -> list[Any]:
    """Whatever the list is called: topics, responses, results, entries."""
    values = [getattr(response, name) for name in response.FIELDS]
    return [item for value in values if isinstance(value, list) for item in value]


def _metadata(request: "messages.MetadataRequest", error: Errors, text: str) -> Message:
    kind = messages.MetadataResponse
    topics = [
        kind.MetadataResponseTopic(name=t.name, topic_id=t.topic_id, error_code=error) for t in request.topics or []
    ]
    return kind(topics=topics, error_code=error)


def _create_topics(request: "messages.CreateTopicsRequest", error: Errors, text: str) -> Message:
    kind = messages.CreateTopicsResponse
    return kind(
        topics=[kind.CreatableTopicResult(name=t.name, error_code=error, error_message=text) for t in request.topics]
    )


def _delete_topics(request: "messages.DeleteTopicsRequest", error: Errors, text: str) -> Message:
    kind = messages.DeleteTopicsResponse
    by_name = [kind.DeletableTopicResult(name=n, error_code=error, error_message=text) for n in request.topic_names]
    by_state = [
        kind.DeletableTopicResult(name=t.name, topic_id=t.topic_id, error_code=error, error_message=text)
        for t in request.topics
    ]
    return kind(responses=[*by_name, *by_state])


def _create_partitions(request: "messages.CreatePartitionsRequest", error: Errors, text: str) -> Message:
    kind = messages.CreatePartitionsResponse
    return kind(
        results=[
            kind.CreatePartitionsTopicResult(name=t.name, error_code=error, error_message=text) for t in request.topics
        ]
    )


def _alter_replica_log_dirs(request: "messages.AlterReplicaLogDirsRequest", error: Errors, text: str) -> Message:
    kind = messages.AlterReplicaLogDirsResponse
    return kind(
        results=[
            kind.AlterReplicaLogDirTopicResult(
                topic.name, [kind.AlterReplicaLogDirPartitionResult(partition, error) for partition in topic.partitions]
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _alter_configs(request: "messages.AlterConfigsRequest", error: Errors, text: str) -> Message:
    kind = messages.AlterConfigsResponse
    return kind(
        responses=[
            kind.AlterConfigsResourceResponse(
                resource_type=r.resource_type, resource_name=r.resource_name, error_code=error, error_message=text
            )
            for r in request.resources
        ]
    )


def _incremental_alter_configs(request: "messages.IncrementalAlterConfigsRequest", error: Errors, text: str) -> Message:
    kind = messages.IncrementalAlterConfigsResponse
    return kind(
        responses=[
            kind.AlterConfigsResourceResponse(
                resource_type=r.resource_type, resource_name=r.resource_name, error_code=error, error_message=text
            )
            for r in request.resources
        ]
    )


def _alter_user_scram_credentials(
    request: "messages.AlterUserScramCredentialsRequest", error: Errors, text: str
) -> Message:
    kind = messages.AlterUserScramCredentialsResponse
    names = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    return kind(
        results=[kind.AlterUserScramCredentialsResult(user=n, error_code=error, error_message=text) for n in names]
    )


def _write_txn_markers(request: "messages.WriteTxnMarkersRequest", error: Errors, text: str) -> Message:
    kind = messages.WriteTxnMarkersResponse
    return kind(
        markers=[
            kind.WritableTxnMarkerResult(
                marker.producer_id,
                [
                    kind.WritableTxnMarkerTopicResult(
                        topic.name,
                        [kind.WritableTxnMarkerPartitionResult(index, error) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _elect_leaders(request: "messages.ElectLeadersRequest", error: Errors, text: str) -> Message:
    kind = messages.ElectLeadersResponse
    return kind(
        error_code=error,
        replica_election_results=[
            kind.ReplicaElectionResult(
                topic.topic, [kind.PartitionResult(index, error, text) for index in topic.partitions]
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _create_acls(request: "messages.CreateAclsRequest", error: Errors, text: str) -> Message:
    kind = messages.CreateAclsResponse
    return kind(results=[kind.AclCreationResult(error, text) for _ in request.creations])


def _delete_acls(request: "messages.DeleteAclsRequest", error: Errors, text: str) -> Message:
    kind = messages.DeleteAclsResponse
    return kind(filter_results=[kind.DeleteAclsFilterResult(error, text) for _ in request.filters])


def _alter_client_quotas(request: "messages.AlterClientQuotasRequest", error: Errors, text: str) -> Message:
    kind = messages.AlterClientQuotasResponse
    return kind(
        entries=[
            kind.EntryData(
                error_code=error,
                error_message=text,
                entity=[kind.EntityData(each.entity_type, each.entity_name) for each in entry.entity],
            )
            for entry in request.entries
        ]
    )


def _describe_client_quotas(request: "messages.DescribeClientQuotasRequest", error: Errors, text: str) -> Message:
    return messages.DescribeClientQuotasResponse(error_code=error, error_message=text, entries=None)


def _describe_scram(request: "messages.DescribeUserScramCredentialsRequest", error: Errors, text: str) -> Message:
    """As Kafka: an error for each user that was named, without his name."""
    kind = messages.DescribeUserScramCredentialsResponse
    users = request.users or ()
    results = [kind.DescribeUserScramCredentialsResult("", error, text) for _ in users]
    return kind(error_code=error, error_message=text, results=results)


_BY_ITEM: Final[Mapping[int, Callable[..., Message]]] = {
    3: _metadata,
    19: _create_topics,
    20: _delete_topics,
    27: _write_txn_markers,
    30: _create_acls,
    31: _delete_acls,
    33: _alter_configs,
    34: _alter_replica_log_dirs,
    37: _create_partitions,
    43: _elect_leaders,
    44: _incremental_alter_configs,
    48: _describe_client_quotas,
    49: _alter_client_quotas,
    50: _describe_scram,
    51: _alter_user_scram_credentials,
}
"""By API key: those whose answers have an error for each thing that was asked for; most of them have none of their
own."""
