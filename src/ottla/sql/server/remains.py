"""What a query that was ended leaves behind: internal topics, offsets, checkpoints, state. Nobody needs them again: the
next query has another id.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from ottla.client import admin, groups
from ottla.client.reach import Reach


def remove(reach: Reach, state_dir: str, ended: str, others: Iterable[str]) -> None:
    """Of the application `ended`, and of none of the `others`. Raises ClientError, SecurityRefused."""
    # A server without queries starts sooner.
    from ottla.streams.run import instances  # noqa: PLC0415
    from ottla.streams.run.reset import is_internal  # noqa: PLC0415

    kept = list(others)
    with reach.cluster() as cluster:
        named = [topic.name or "" for topic in cluster.metadata().topics]
        internal = [name for name in named if is_internal(ended, name, kept)]
        if internal:
            admin.delete_topics(cluster, internal)
        groups.delete(cluster, [ended, ended + instances.SUFFIX])
    shutil.rmtree(Path(state_dir) / ended, ignore_errors=True)
