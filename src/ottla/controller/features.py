"""Finalized feature levels go up, and sometimes down (KIP-584)."""

from collections.abc import Mapping
from typing import Final

from ottla.controller.decision import Decision
from ottla.metadata.features import (
    ELR_MINIMUM_METADATA_VERSION,
    METADATA_CHANGED,
    SUPPORTED,
    UNSERVED,
)
from ottla.metadata.image import (
    BROKER_RESOURCE,
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    MetadataImage,
    VersionRange,
)
from ottla.model.errors import Errors
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
_MIN_ISR: Final = "min.insync.replicas"


def update_features(
    image: MetadataImage,
    settings: Settings,
    request: "messages.UpdateFeaturesRequest",
    *,
    kraft_version: int,
) -> "Decision[messages.UpdateFeaturesResponse]":
    updates = {u.feature: u for u in request.feature_updates}
    levels = {**image.features, **{name: u.max_version_level for name, u in updates.items()}}
    records: list[MetadataRecord] = []
    for name, update in updates.items():
        current = kraft_version if name == KRAFT_VERSION else image.features.get(name, 0)
        problem = _problem(image, name, current, update, levels)
        if problem is not None:
            message = f"No feature was changed: level {update.max_version_level} of {name} was refused. {problem}"
            return Decision(
                messages.UpdateFeaturesResponse(error_code=Errors.INVALID_UPDATE_VERSION, error_message=message)
            )
        if name != KRAFT_VERSION and update.max_version_level != current:
            records.append(messages.FeatureLevelRecord(name=name, feature_level=update.max_version_level))
    if levels.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0 and not image.elr_enabled:
        records += elr_safety_records(image, settings)
    kind = messages.UpdateFeaturesResponse
    results = [kind.UpdatableFeatureResult(feature=name, error_message=None) for name in updates]
    return Decision(kind(error_message=None, results=results), () if request.validate_only else tuple(records))


def _problem(
    image: MetadataImage,
    name: str,
    current: int,
    update: "messages.UpdateFeaturesRequest.FeatureUpdateKey",
    levels: Mapping[str, int],
) -> str | None:
    level = update.max_version_level
    kind = update.upgrade_type
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"Upgrade type {kind} is unknown."
    if level < 0:
        return "A level cannot be negative."
    unsupported = _why_unsupported(image, name, level)
    if unsupported is not None:
        return unsupported
    if level < current and kind == UPGRADE:
        return f"It is at {current}: going down must be asked for as a downgrade."
    if name in UNSERVED and level > current:
        return "Its APIs are not served by this version of ottla."
    if level > current and kind != UPGRADE:
        return f"It is at {current}: a downgrade cannot go up."
    if name == KRAFT_VERSION and level != current:
        return "A quorum is static or dynamic from its first start: ottla does not upgrade one to the other."
    if name == METADATA_VERSION and any(level < changed <= current for changed in METADATA_CHANGED):
        return f"Going down from {current} would lose metadata."
    if level and levels.get(METADATA_VERSION, 0) < _needed_metadata_version(name):
        return f"It needs {METADATA_VERSION} {_needed_metadata_version(name)} or later."
    return None


def _needed_metadata_version(name: str) -> int:
    if name == ELIGIBLE_LEADER_REPLICAS:
        return ELR_MINIMUM_METADATA_VERSION
    return SUPPORTED[METADATA_VERSION].min


def _why_unsupported(image: MetadataImage, name: str, level: int) -> str | None:
    if name not in SUPPORTED:
        return "There is no such feature."  # level 0 of it would otherwise be one that every node supports
    none = VersionRange(0, 0)
    nodes = [("This controller", SUPPORTED)]
    nodes += [(f"Broker {b.id}", b.features) for b in image.brokers.values()]
    nodes += [(f"Controller {c.id}", c.features) for c in image.controllers.values()]
    for who, supported in nodes:
        low, high = supported.get(name, none)
        if not low <= level <= high:
            return f"{who} does not support it." if high == 0 else f"{who} supports {low} to {high}."
    return None


def elr_safety_records(image: MetadataImage, settings: Settings) -> list[MetadataRecord]:
    """With ELR one min.insync.replicas must hold on all brokers: a cluster-wide one, and none for single brokers."""
    records: list[MetadataRecord] = []
    if _MIN_ISR not in image.cluster_configs:
        records.append(
            messages.ConfigRecord(
                resource_type=BROKER_RESOURCE,
                resource_name="",
                name=_MIN_ISR,
                value=str(settings.get_int(_MIN_ISR)),
            )
        )
    for (kind, name), entries in image.configs.items():
        if kind == BROKER_RESOURCE and name and _MIN_ISR in entries:
            records.append(messages.ConfigRecord(resource_type=kind, resource_name=name, name=_MIN_ISR, value=None))
    return records
