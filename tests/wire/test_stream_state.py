"""What an application finds of its state on the brokers when it starts."""

from collections.abc import Callable, Iterator

import pytest

from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.streams.run import topics

NewTopicName = Callable[[], str]
LIKE_A_WINDOWS = {"cleanup.policy": "compact,delete", "retention.ms": "86400000"}


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(parse_bootstrap(bootstrap)) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("wanted", "configs"),
    [
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact", "retention.ms": None}),
        (
            {"cleanup.policy": "compact", "retention.ms": "-1"},
            {"cleanup.policy": "compact", "retention.ms": "-1"},
        ),
        ({"cleanup.policy": "compact,delete"}, LIKE_A_WINDOWS),
    ],
    ids=["compacted", "with a retention that the user gave", "deleting, as the user wants it"],
)
def test_the_changelog_of_an_own_store_that_loses_what_is_old_is_altered_at_the_start(
    cluster: Cluster, topic: str, wanted: dict[str, str], configs: dict[str, str | None]
) -> None:
    admin.create_topics(cluster, [admin.NewTopic(topic, 1, 1, LIKE_A_WINDOWS)])
    for _ in range(2):
        topics.keep_whole(cluster, [admin.NewTopic(topic, 1, configs=wanted)])
        assert given(cluster, topic) == configs


def given(cluster: Cluster, topic: str) -> dict[str, str | None]:
    told = admin.describe_configs(cluster, admin.TOPIC, [topic])[topic]
    assert not isinstance(told, KafkaError)
    found = {each.name: each.value for each in told if each.config_source == admin.FROM_TOPIC}
    return {name: found.get(name) for name in LIKE_A_WINDOWS}
