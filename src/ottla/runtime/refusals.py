"""The answer that says no to a whole request, in the shape each request has for it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.codec import Message


def refused(request: Message, error: Errors, text: str | None = None) -> Message:
    """The response to `request` in which everything it asked for failed with `error`."""
    special = _SPECIAL.get(type(request).__name__)
    if special is not None:
        return special(request, error, text or error.text)
    kind: Any = messages.response_class(request.API_KEY)
    response: Message = kind(error_code=error)
    if "error_message" in response.FIELDS:
        response.error_message = text or error.text  # type: ignore[attr-defined]
    return response


def is_refusal(response: Message, error: Errors) -> bool:
    """Whether a whole request failed with that error."""
    code = getattr(response, "error_code", None)
    if code is not None:
        return bool(code == error)
    return any(getattr(item, "error_code", None) == error for item in _items(response))


def _items(response: Message) -> list[Any]:
    for name in ("topics", "responses", "results"):
        found = getattr(response, name, None)
        if found is not None:
            return list(found)
    return []


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


_SPECIAL: Final[Mapping[str, Callable[..., Message]]] = {
    "CreateTopicsRequest": _create_topics,
    "DeleteTopicsRequest": _delete_topics,
    "CreatePartitionsRequest": _create_partitions,
    "AlterConfigsRequest": _alter_configs,
    "IncrementalAlterConfigsRequest": _incremental_alter_configs,
}
