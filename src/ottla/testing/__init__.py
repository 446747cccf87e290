"""What ottla gives to people who write tests: a Kafka that starts in milliseconds inside their process."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.testing.cluster import Cluster as Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> object:
    # The pytest plugin is loaded by every pytest run of an environment: only those that use a cluster pay for it.
    if name == "Cluster":
        from ottla.testing.cluster import Cluster  # noqa: PLC0415

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
