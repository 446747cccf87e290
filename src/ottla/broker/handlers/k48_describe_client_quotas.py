"""DescribeClientQuotas: which quotas are set, of those that a filter names (KIP-546).

Versions 0 and 1. 1 is flexible.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.metadata.image import QuotaEntity
from ottla.model.errors import Errors
from ottla.model.quotas import CLIENT_ID, IP, USER
from ottla.protocol.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse

Component: TypeAlias = DescribeClientQuotasRequest.ComponentData
Entry: TypeAlias = DescribeClientQuotasResponse.EntryData

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2
"""Any name, the default included."""


def handle(
    services: Services, session: Session, request: DescribeClientQuotasRequest, version: int
) -> DescribeClientQuotasResponse:
    refusal = _refusal(request.components)
    if refusal is not None:
        error, text = refusal
        return DescribeClientQuotasResponse(error_code=error, error_message=text, entries=None)
    return DescribeClientQuotasResponse(
        entries=[
            Entry(
                entity=[
                    DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                values=[DescribeClientQuotasResponse.ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in services.control_plane.image.client_quotas.items()
            if _matches(entity, request.components, strict=request.strict)
        ],
    )


def _refusal(components: Sequence[Component]) -> tuple[Errors, str] | None:
    seen: dict[str, None] = {}
    for each in components:
        kind = each.entity_type
        if not kind:
            return Errors.INVALID_REQUEST, "A part of the filter has no entity type."
        if kind in seen:
            return Errors.INVALID_REQUEST, f"The filter has {kind} more than once."
        if kind not in (USER, CLIENT_ID, IP):
            return Errors.UNSUPPORTED_VERSION, f"There are quotas of {USER}, {CLIENT_ID} and {IP}, not of '{kind}'."
        seen[kind] = None
        if each.match_type not in (EXACT, DEFAULT, SPECIFIED):
            return Errors.INVALID_REQUEST, f"The match type {each.match_type} is unknown."
        if (each.match is None) == (each.match_type == EXACT):
            return Errors.INVALID_REQUEST, f"The filter for {kind} has to have a name if, and only if, it is exact."
    if IP in seen and len(seen) > 1:
        return Errors.INVALID_REQUEST, "A quota of an ip is of nothing else."
    return None


def _matches(entity: QuotaEntity, components: Sequence[Component], *, strict: bool) -> bool:
    parts = dict(entity)
    if strict and len(parts) != len(components):
        return False
    return all(
        each.entity_type in parts and (each.match_type == SPECIFIED or parts[each.entity_type] == each.match)
        for each in components
    )
