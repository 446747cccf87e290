"""Feature levels: who must support them, and which way they may go."""

import pytest

from ottla.controller.activation import activation_records, default_bootstrap_records
from ottla.controller.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE
from ottla.metadata.image import EMPTY
from ottla.model.errors import Errors
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, a_registration, features


def update(scene: Scene, name: str, level: int, kind: int, *, validate_only: bool = False) -> int:
    request = messages.UpdateFeaturesRequest(
        feature_updates=[
            messages.UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        ],
        validate_only=validate_only,
    )
    reply = scene.play(request).reply
    assert isinstance(reply, messages.UpdateFeaturesResponse)
    return reply.error_code


@pytest.mark.parametrize(
    ("name", "level", "kind", "error"),
    [
        ("group.version", 0, SAFE_DOWNGRADE, Errors.NONE),
        ("group.version", 0, UPGRADE, Errors.INVALID_UPDATE_VERSION),
        ("group.version", 1, UPGRADE, Errors.NONE),
        ("group.version", 2, UPGRADE, Errors.INVALID_UPDATE_VERSION),
        ("group.version", -1, SAFE_DOWNGRADE, Errors.INVALID_UPDATE_VERSION),
        ("group.version", 1, 9, Errors.INVALID_UPDATE_VERSION),
        ("no.such.feature", 1, UPGRADE, Errors.INVALID_UPDATE_VERSION),
        ("no.such.feature", 0, UPGRADE, Errors.INVALID_UPDATE_VERSION),
        ("no.such.feature", 0, SAFE_DOWNGRADE, Errors.INVALID_UPDATE_VERSION),
        ("metadata.version", 29, SAFE_DOWNGRADE, Errors.INVALID_UPDATE_VERSION),  # cordoned directories would be lost
        ("metadata.version", 29, UNSAFE_DOWNGRADE, Errors.INVALID_UPDATE_VERSION),
        ("metadata.version", 31, UPGRADE, Errors.INVALID_UPDATE_VERSION),
        ("kraft.version", 1, UPGRADE, Errors.INVALID_UPDATE_VERSION),
    ],
)
def test_a_level_must_be_supported_and_go_the_way_it_is_said_to_go(
    name: str, level: int, kind: int, error: Errors
) -> None:
    assert update(Scene().with_brokers(1), name, level, kind) == error


def test_a_level_of_zero_switches_a_feature_off() -> None:
    scene = Scene()
    update(scene, "group.version", 0, SAFE_DOWNGRADE)
    assert "group.version" not in scene.image.features
    update(scene, "group.version", 1, UPGRADE)
    assert scene.image.features["group.version"] == 1


def test_every_registered_broker_must_support_the_level() -> None:
    scene = Scene()
    update(scene, "group.version", 0, SAFE_DOWNGRADE)
    old = a_registration(2)
    old.features = [f for f in old.features if f.name != "group.version"]
    scene.play(old)
    assert update(scene, "group.version", 1, UPGRADE) == Errors.INVALID_UPDATE_VERSION


def test_validate_only_changes_no_level() -> None:
    scene = Scene()
    assert update(scene, "group.version", 0, SAFE_DOWNGRADE, validate_only=True) == Errors.NONE
    assert scene.image.features["group.version"] == 1


def test_kip_966_elr_comes_with_one_min_isr_for_the_whole_cluster() -> None:
    scene = Scene(records=features(elr=0), min_insync_replicas="2").with_brokers(1)
    scene.replay([messages.ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value="3")])
    assert update(scene, "eligible.leader.replicas.version", 1, UPGRADE) == Errors.NONE
    assert scene.image.elr_enabled
    assert scene.image.cluster_configs == {"min.insync.replicas": "2"}
    assert scene.image.broker_configs(1) == {}


@pytest.mark.parametrize("name", ["share.version", "streams.version"])
def test_what_is_not_served_is_not_finalized_but_a_log_of_kafkas_may_have_it(name: str) -> None:
    scene = Scene().with_brokers(1)
    assert update(scene, name, 1, UPGRADE) == Errors.INVALID_UPDATE_VERSION
    scene.replay([messages.FeatureLevelRecord(name=name, feature_level=1)])
    scene.with_brokers(2)
    assert update(scene, name, 0, UNSAFE_DOWNGRADE) == Errors.NONE


def test_a_new_cluster_begins_with_kafkas_features_as_far_as_they_are_served_in_one_transaction() -> None:
    records = activation_records(EMPTY, default_bootstrap_records(), min_isr="1", open_transaction=False)
    assert [repr(r) for r in records] == [
        "BeginTransactionRecord(name='Bootstrap records')",
        "FeatureLevelRecord(name='metadata.version', feature_level=30)",
        "FeatureLevelRecord(name='eligible.leader.replicas.version', feature_level=1)",
        "FeatureLevelRecord(name='group.version', feature_level=1)",
        "FeatureLevelRecord(name='transaction.version', feature_level=2)",
        "ConfigRecord(resource_type=4, resource_name='', name='min.insync.replicas', value='1')",
        "EndTransactionRecord()",
    ]


def test_a_running_cluster_gets_nothing_but_the_end_of_a_torn_transaction() -> None:
    image = Scene().image
    assert activation_records(image, [], min_isr="1", open_transaction=False) == []
    torn = activation_records(image, [], min_isr="1", open_transaction=True)
    assert torn == [messages.AbortTransactionRecord(reason="Controller failover")]
