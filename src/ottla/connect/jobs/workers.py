"""What a Python worker of Spark's keeps from task to task: connectors that are open, and connections to brokers."""

from __future__ import annotations

import logging
from typing import Protocol, TypeVar

from ottla.connect.jobs.spec import JobSpec

logger = logging.getLogger(__name__)


class Task(Protocol):
    spec: JobSpec

    def close(self) -> None: ...


T = TypeVar("T", bound=Task)

_tasks: dict[str, Task] = {}
"""By folder: connectors of two workers may have one name, and a mirror runs several of one name."""


def kept(kind: type[T], spec: JobSpec) -> T:
    """The task of this life of the connector; one of a former life is closed."""
    found = _tasks.get(spec.directory)
    if isinstance(found, kind) and found.spec == spec:
        return found
    forget(spec)
    made = kind(spec)  # type: ignore[call-arg]
    _tasks[spec.directory] = made
    return made


def forget(spec: JobSpec) -> None:
    found = _tasks.pop(spec.directory, None)
    if found is not None:
        try:
            found.close()
        except Exception:  # a connector's own
            logger.exception("%s could not be closed", spec.name)
