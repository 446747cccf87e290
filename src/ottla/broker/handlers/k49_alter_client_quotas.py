"""AlterClientQuotas: sets and removes quotas of users, client ids and addresses; the controller decides (KIP-546).

Versions 0 and 1. 1 is flexible.
"""

import asyncio
import socket
from typing import Final

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.model.quotas import IP
from ottla.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse

_RESOLVE_SECONDS: Final = 5.0
_MOST_NAMES: Final = 100
"""Looked up for one request, one after the other."""


async def handle(
    services: Services | ControllerServices, session: Session, request: AlterClientQuotasRequest, version: int
) -> AlterClientQuotasResponse:
    """Kafka takes names of hosts where it wants addresses, if they can be resolved."""
    asked = request.entries
    lost = await _unresolved(asked)
    request.entries = [entry for entry in asked if _address(entry) not in lost]
    response = await services.decide(request, session.client)
    response.entries += [
        AlterClientQuotasResponse.EntryData(
            error_code=Errors.INVALID_REQUEST,
            error_message=f"{_address(entry)} is not an address, nor a host that can be resolved.",
            entity=[
                AlterClientQuotasResponse.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                for part in entry.entity
            ],
        )
        for entry in asked
        if _address(entry) in lost
    ]
    return response


def _address(entry: AlterClientQuotasRequest.EntryData) -> str:
    """Empty: it is not about one."""
    parts = entry.entity
    return parts[0].entity_name or "" if len(parts) == 1 and parts[0].entity_type == IP else ""


async def _unresolved(entries: list[AlterClientQuotasRequest.EntryData]) -> dict[str, None]:
    named = dict.fromkeys(filter(None, map(_address, entries)))
    lost: dict[str, None] = {}
    for asked, address in enumerate(named):
        if not _is_address(address) and (asked >= _MOST_NAMES or not await _can_be_resolved(address)):
            lost[address] = None
    return lost


def _is_address(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):
        return False
    return True


async def _can_be_resolved(host: str) -> bool:
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            return bool(await asyncio.get_running_loop().getaddrinfo(host, None))
    except (OSError, TimeoutError, UnicodeError):
        return False
