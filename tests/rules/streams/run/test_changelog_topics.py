"""With which settings changelogs are made."""

import pytest

from ottla.client.admin import NewTopic
from ottla.streams.run.topics import Inputs, changelog_topics
from ottla.streams.topology.graph import SubTopology
from ottla.streams.topology.stores import StoreKind, StoreSpec

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


def changelog_of(store: StoreSpec, **settings: str) -> NewTopic:
    (topic,) = changelog_topics("app", SubTopology(0, (), (store,)), Inputs({}, frozenset()), DAY_MS, settings)
    return topic


OLD_GOES = {**COMPACTED, "cleanup.policy": "compact,delete", "retention.ms": str(HOUR_MS + DAY_MS)}
CONFIGS = {
    StoreKind.KEY_VALUE: COMPACTED,
    StoreKind.OWN: COMPACTED,
    StoreKind.VERSIONED: {**COMPACTED, "min.compaction.lag.ms": str(HOUR_MS + DAY_MS)},
    StoreKind.WINDOW: OLD_GOES,
    StoreKind.SESSION: OLD_GOES,
}


@pytest.mark.parametrize("kind", StoreKind)
def test_only_changelogs_of_windows_and_sessions_lose_what_is_old(kind: StoreKind) -> None:
    store = StoreSpec("kept", kind, retention_ms=HOUR_MS)
    assert changelog_of(store) == NewTopic("app-kept-changelog", partitions=1, configs=CONFIGS[kind])


def test_what_the_user_says_about_a_changelog_counts() -> None:
    store = StoreSpec("kept", StoreKind.OWN, changelog_config={"cleanup.policy": "compact,delete"})
    assert changelog_of(store, **{"segment.bytes": "1048576"}).configs == {
        **COMPACTED,
        "cleanup.policy": "compact,delete",
        "segment.bytes": "1048576",
    }
