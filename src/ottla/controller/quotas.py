"""Client quotas are set and removed here (KIP-546, KIP-612). Only what changes is logged."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.controller.decision import Decision
from ottla.controller.refusal import Refusal
from ottla.metadata.image import MetadataImage, QuotaEntity
from ottla.model.errors import Errors
from ottla.model.quotas import ENTITY_TYPES, GREATEST_INTEGER, IP, OF_ADDRESSES, OF_CLIENTS
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

_ALMOST: Final = 1e-6
"""Kafka's: what a decimal fraction loses on its way through a double is no fraction."""
_ADDRESS: Final = re.compile(r"[A-Za-z0-9_.:%-]{1,255}")
"""An address or the name of a host; whether it can be resolved is asked before, where there is somebody to ask."""

Changes = dict[str, float | None]
"""By key; None removes."""


def alter_client_quotas(
    image: MetadataImage, request: "messages.AlterClientQuotasRequest"
) -> "Decision[messages.AlterClientQuotasResponse]":
    kind = messages.AlterClientQuotasResponse
    outcomes: dict[tuple[tuple[str, str | None], ...], Refusal] = {}
    records: list[MetadataRecord] = []
    for entry in request.entries:
        named = tuple((part.entity_type, part.entity_name) for part in entry.entity)
        altered = _altered(image, named, entry.ops)
        if isinstance(altered, Refusal):
            outcomes[named] = altered
        else:
            outcomes[named] = Refusal(Errors.NONE, "")
            records += altered
    reply = kind(
        entries=[
            kind.EntryData(
                error_code=refusal.error,
                error_message=refusal.message or None,
                entity=[kind.EntityData(entity_type=each, entity_name=name) for each, name in named],
            )
            for named, refusal in outcomes.items()
        ]
    )
    return Decision(reply, () if request.validate_only else tuple(records))


def _altered(
    image: MetadataImage,
    named: Sequence[tuple[str, str | None]],
    ops: "Sequence[messages.AlterClientQuotasRequest.OpData]",
) -> list[MetadataRecord] | Refusal:
    refusal = _entity_refusal(named)
    if refusal is not None:
        return refusal
    entity: QuotaEntity = tuple(sorted(named, key=lambda part: part[0]))
    allowed = OF_ADDRESSES if entity[0][0] == IP else OF_CLIENTS
    current: Mapping[str, float] = image.client_quotas.get(entity, {})
    changes: Changes = {}
    for op in ops:
        if op.key in changes:
            return _invalid(f"{op.key} is changed twice in one entry.")
        changes[op.key] = None if op.remove else op.value
        # Kafka's: what nobody has set can be removed, whatever it is called.
        refusal = None if op.remove else _value_refusal(op.key, op.value, allowed)
        if refusal is not None:
            return refusal
    return [
        _record(entity, key, value)
        for key, value in changes.items()
        if (key in current if value is None else current.get(key) != value)
    ]


def _record(entity: QuotaEntity, key: str, value: float | None) -> MetadataRecord:
    kind = messages.ClientQuotaRecord
    parts = [kind.EntityData(entity_type=each, entity_name=name) for each, name in entity]
    return kind(entity=parts, key=key, value=value or 0.0, remove=value is None)


def _invalid(text: str) -> Refusal:
    return Refusal(Errors.INVALID_REQUEST, text)


def _entity_refusal(named: Sequence[tuple[str, str | None]]) -> Refusal | None:
    if not named:
        return _invalid("Whose quota is it? Name a user, a client-id, both, or an ip.")
    types = [each for each, _ in named]
    for each, name in named:
        if each not in ENTITY_TYPES:
            return _invalid(f"There are quotas of {', '.join(ENTITY_TYPES)}, not of '{each}'.")
        if name == "":
            return _invalid(f"The name of a {each} is empty; null stands for the default.")
    if len(dict.fromkeys(types)) < len(types):
        return _invalid(f"One entity has each part once: {', '.join(types)}.")
    if IP in types:
        if len(types) > 1:
            return _invalid("A quota of an ip is of nothing else.")
        address = named[0][1]
        if address is not None and not _ADDRESS.fullmatch(address):
            return _invalid(f"'{address}' is no address and no name of a host.")
    return None


def _value_refusal(key: str, value: float, allowed: Sequence[str]) -> Refusal | None:
    if key not in allowed:
        return _invalid(f"There is no quota '{key}' here, but {', '.join(allowed)}.")
    if not value > 0:  # nor is a NaN
        return _invalid(f"{key} must be greater than 0.")
    greatest = GREATEST_INTEGER.get(key)
    if greatest is not None:
        if value > greatest:
            return _invalid(f"{key} must not be greater than {greatest}.")
        if abs(value % 1.0) > _ALMOST:
            return _invalid(f"{key} cannot have a fraction.")
    return None
