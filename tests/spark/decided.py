"""A commit is decided, and answered, before its markers are in the logs: who reads right behind one has to wait."""

from collections.abc import Sequence

from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.offsets import LATEST, READ_COMMITTED, READ_UNCOMMITTED, Found, list_offsets
from ottla.model.ids import TopicPartition
from tests.support.patience import eventually


def stable_ends(client: Client, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """Where the partitions end, as soon as no transaction is open in them."""
    found: dict[TopicPartition, int] = {}

    def decided() -> bool:
        found.update(_ends(client, places, READ_COMMITTED))
        return found == _ends(client, places, READ_UNCOMMITTED)

    eventually(decided, "the end of every transaction")
    return found


def _ends(client: Client, places: Sequence[TopicPartition], isolation: int) -> dict[TopicPartition, int]:
    ends: dict[TopicPartition, int] = {}
    for place, found in list_offsets(client, dict.fromkeys(places, LATEST), isolation=isolation).items():
        assert isinstance(found, Found), found
        ends[place] = found.offset
    return ends
