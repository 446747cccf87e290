"""Quotas, as tests set and read them over the wire."""

from collections.abc import Mapping
from typing import Any

from ottla.protocol import messages as m
from tests.support.wire import Wire

Entity = dict[str, str | None]
"""By type; None for the default."""
Values = Mapping[str, float | None]
"""By key; None removes."""

EXACT, DEFAULT, SPECIFIED = range(3)


def alter_request(entity: Entity, values: Values, *, validate_only: bool = False) -> m.AlterClientQuotasRequest:
    kind = m.AlterClientQuotasRequest
    ops = [kind.OpData(key, value or 0.0, value is None) for key, value in values.items()]
    parts = [kind.EntityData(each, name) for each, name in entity.items()]
    return kind(entries=[kind.EntryData(parts, ops)], validate_only=validate_only)


def altered(wire: Wire, entity: Entity, values: Values, *, validate_only: bool = False) -> int:
    """The error code."""
    (answer,) = wire.ask(alter_request(entity, values, validate_only=validate_only)).entries
    assert [(part.entity_type, part.entity_name) for part in answer.entity] == list(entity.items())
    assert bool(answer.error_message) == bool(answer.error_code)
    return int(answer.error_code)


def limit(wire: Wire, entity: Entity, **values: float | None) -> None:
    assert altered(wire, entity, values) == 0


def described(wire: Wire, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    """By entity, or the error code."""
    kind = m.DescribeClientQuotasRequest
    asked = kind(components=[kind.ComponentData(*each) for each in components], strict=strict)
    answer = wire.ask(asked)
    if answer.error_code:
        assert answer.entries is None and answer.error_message
        return answer.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }
