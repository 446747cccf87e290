"""Client quotas: which are set, and changing them (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.errors import KafkaError, check, known
from ottla.client.routing import Routing, call
from ottla.client.steps import Steps, operation
from ottla.protocol import messages

Entity = tuple[tuple[str, str | None], ...]
"""Types and names, by type; None stands for the default."""


@operation
def describe(routing: Routing) -> Steps[dict[Entity, dict[str, float]]]:
    """All of them."""
    response = yield from call(routing, messages.DescribeClientQuotasRequest(), messages.DescribeClientQuotasResponse)
    check(response.error_code, "quotas", response.error_message)
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries or ()
    }


@operation
def alter(routing: Routing, entity: Entity, values: Mapping[str, float | None]) -> Steps[None]:
    """Sets, and removes where the value is None. Raises KafkaError."""
    kind = messages.AlterClientQuotasRequest
    ops = [kind.OpData(key, value or 0.0, value is None) for key, value in values.items()]
    entry = kind.EntryData([kind.EntityData(each, name) for each, name in entity], ops)
    response = yield from call(routing, kind(entries=[entry]), messages.AlterClientQuotasResponse)
    for outcome in response.entries:
        if outcome.error_code:
            raise KafkaError(known(outcome.error_code), "quotas", outcome.error_message)
