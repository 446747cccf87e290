"""Which of the other workers is gone, long before its session is over: it listened, and now nobody does at its address.

A core: it is told who there is and what was seen at their addresses, and says who is gone. A process that was killed
leaves a port that refuses; a machine or a network that is away is silent, which proves nothing and is left to the
session. Who never listened, as seen from here, is not judged: its address may be one that cannot be reached.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

ENOUGH: Final = 2
"""Refusals in a row: one alone may be a listener that is opened anew."""


class Seen(Enum):
    LISTENS = "listens"
    REFUSES = "refuses"
    SILENT = "silent"


@dataclass(slots=True)
class _Peer:
    url: str
    listened: bool = False
    refusals: int = 0


class Peers:
    __slots__ = ("_peers",)

    def __init__(self) -> None:
        self._peers: dict[str, _Peer] = {}

    def are(self, urls: Mapping[str, str]) -> None:
        """By member id: who is to be watched from now on. Of those that stay, what was seen stays as well."""
        before = self._peers
        self._peers = {}
        for member, url in urls.items():
            known = before.get(member)
            self._peers[member] = known if known is not None and known.url == url else _Peer(url)

    @property
    def watched(self) -> Mapping[str, str]:
        return {member: peer.url for member, peer in self._peers.items()}

    def saw(self, member: str, seen: Seen) -> bool:
        """Whether that one is gone; said once."""
        peer = self._peers.get(member)
        if peer is None:
            return False
        match seen:
            case Seen.LISTENS:
                peer.listened, peer.refusals = True, 0
            case Seen.REFUSES:
                peer.refusals += 1
            case Seen.SILENT:
                peer.refusals = 0
        if not peer.listened or peer.refusals < ENOUGH:
            return False
        del self._peers[member]
        return True
