"""A new node that does not begin a cluster belongs to one that is there: its controllers say which.

Only they can know: their id may be given in a file, drawn, or older than the list of members that this node was given.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from ottla.model.properties import Settings
from ottla.net.peer import Address, Peers, Unreachable
from ottla.protocol import messages
from ottla.runtime.formatting import Beginning, beginning
from ottla.storage.fs import Filesystem

logger = logging.getLogger(__name__)

_CONTROLLERS: Final = 2
_ASK_MS: Final = 1_000
_FIRST_ASK_MS: Final = 300
_PAUSE_SECONDS: Final = 0.1
LANE: Final = "join"


async def cluster_to_join(settings: Settings, fs: Filesystem, peers: Peers, absent: Sequence[str] = ()) -> str | None:
    """The id of the cluster that this node is to join; None if it has one, or makes one."""
    how = beginning(settings, fs, absent)
    if how is Beginning.KNOWN:
        return None
    others = _others(settings)
    if how is Beginning.FIRST:
        # Its disk may be new in a quorum that lives on without it: then it joins, and must not begin another.
        return await _asked(peers, others, _FIRST_ASK_MS, led=True)
    logger.info("waiting for a controller at %s", ", ".join(map(str, others)))
    while True:
        found = await _asked(peers, others, _ASK_MS)
        if found is not None:
            return found
        await asyncio.sleep(_PAUSE_SECONDS)


def _others(settings: Settings) -> list[Address]:
    own = [Address(each.host, each.port) for each in settings.advertised_controller_listeners]
    named = [Address(voter.host, voter.port) for voter in settings.voters]
    named += [Address(each.host, each.port) for each in settings.bootstrap_controllers]
    return [address for address in dict.fromkeys(named) if not settings.is_controller or address not in own]


async def _asked(peers: Peers, addresses: Sequence[Address], timeout_ms: int, *, led: bool = False) -> str | None:
    """What the first that answers says; with `led` only one that knows a leader counts."""
    asks = [asyncio.ensure_future(_ask(peers, address, timeout_ms, led=led)) for address in addresses]
    try:
        for answer in asyncio.as_completed(asks):
            if (found := await answer) is not None:
                return found
        return None
    finally:
        for ask in asks:
            ask.cancel()


async def _ask(peers: Peers, address: Address, timeout_ms: int, *, led: bool) -> str | None:
    request = messages.DescribeClusterRequest(endpoint_type=_CONTROLLERS)
    try:
        answer = await peers.ask(address, request, timeout_ms=timeout_ms, lane=LANE)
    except Unreachable:
        return None
    assert isinstance(answer, messages.DescribeClusterResponse)
    if answer.error_code or (led and answer.controller_id < 0):
        return None
    return answer.cluster_id or None
