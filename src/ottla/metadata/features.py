"""Feature levels (KIP-584, KIP-1022): what this version of ottla supports and what a new cluster starts with.

What is supported is equal to Apache Kafka 4.3.1's, so that either can start on the other's directory.
"""

from collections.abc import Mapping
from typing import Final

from ottla.metadata.image import KRAFT_VERSION, METADATA_VERSION, VersionRange

LATEST_METADATA_VERSION: Final = 30  # 4.3-IV0
ELR_MINIMUM_METADATA_VERSION: Final = 23  # 4.0-IV1
TRANSACTIONS_METADATA_VERSION: Final = 13  # 3.6-IV1: metadata transactions, KIP-868

SUPPORTED: Final[Mapping[str, VersionRange]] = {
    "eligible.leader.replicas.version": VersionRange(0, 1),
    "group.version": VersionRange(0, 1),
    KRAFT_VERSION: VersionRange(0, 1),
    METADATA_VERSION: VersionRange(7, LATEST_METADATA_VERSION),
    "share.version": VersionRange(0, 1),
    "streams.version": VersionRange(0, 1),
    "transaction.version": VersionRange(0, 2),
}

UNSERVED: Final = ("share.version", "streams.version")
"""Kafka finalizes them, so a node has to live with a log that does. They change nothing here, as the APIs that they
stand for are not served: no cluster of ottla's begins with one, none can be raised, clients are not told of them."""

DEFAULTS: Final[Mapping[str, int]] = {
    METADATA_VERSION: LATEST_METADATA_VERSION,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "transaction.version": 2,
}
"""In the order in which Kafka's formatter writes them: metadata.version first, the rest by name. kraft.version has no
record here, the quorum keeps it."""

METADATA_CHANGED: Final = (8, 11, 13, 14, 15, 17, 23, 30)
"""Levels of metadata.version that brought new records or fields: a downgrade may not cross one."""
