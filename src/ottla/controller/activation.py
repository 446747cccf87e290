"""What a controller writes when it takes over: bootstrap records of a new cluster, the end of a torn transaction."""

from collections.abc import Sequence
from typing import Final

from ottla.metadata.features import DEFAULTS, TRANSACTIONS_METADATA_VERSION
from ottla.metadata.image import BROKER_RESOURCE, ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION, MetadataImage
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

_BOOTSTRAP: Final = "Bootstrap records"


def default_bootstrap_records() -> list[MetadataRecord]:
    """What `kafka-storage format` puts into bootstrap.checkpoint."""
    return [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in DEFAULTS.items()]


def activation_records(
    image: MetadataImage, bootstrap: Sequence[MetadataRecord], *, min_isr: str, open_transaction: bool
) -> list[MetadataRecord]:
    """Records to append first in a new epoch. An image without metadata.version is that of an empty log."""
    records: list[MetadataRecord] = []
    if open_transaction:
        records.append(messages.AbortTransactionRecord(reason="Controller failover"))
    if image.metadata_version:
        return records
    levels = {r.name: r.feature_level for r in bootstrap if isinstance(r, messages.FeatureLevelRecord)}
    in_transaction = levels.get(METADATA_VERSION, 0) >= TRANSACTIONS_METADATA_VERSION
    if in_transaction:
        records.append(messages.BeginTransactionRecord(name=_BOOTSTRAP))
    records += bootstrap
    if levels.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        records.append(
            messages.ConfigRecord(
                resource_type=BROKER_RESOURCE, resource_name="", name="min.insync.replicas", value=min_isr
            )
        )
    if in_transaction:
        records.append(messages.EndTransactionRecord())
    return records
