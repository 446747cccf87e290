"""What ottla gives to people who write tests: a Kafka that starts in milliseconds inside their process.

`Cluster` is one node or several, each a thread of this process with a loop, real sockets and a directory of its own
(`node_thread`, `addresses`); faults are method calls (`cut` loses what nodes send each other); `reset` ends them and
empties the cluster (`emptying`); `records` writes and reads for tests without a client; `connectors` tries a connector
without a cluster. The fixtures `kafka` and `kafka_cluster` are in a distribution of their own, `plugins/pytest-ottla`.
`sim`, `disk`, `cleaner` and `checkers` are for ottla's own tests: clusters on a simulated clock, network and disk.
"""

import gc
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.client.errors import KafkaError as KafkaError
    from ottla.model.properties import SettingsError as SettingsError
    from ottla.node.node import StartFailed as StartFailed
    from ottla.testing.cluster import Cluster as Cluster
    from ottla.testing.connectors import connect as connect
    from ottla.testing.records import Record as Record

__all__ = ["Cluster", "KafkaError", "Record", "SettingsError", "StartFailed", "connect"]

_HOMES: Final = {
    "Cluster": "ottla.testing.cluster",
    "KafkaError": "ottla.client.errors",
    "Record": "ottla.testing.records",
    "SettingsError": "ottla.model.properties",
    "StartFailed": "ottla.node.node",
    "connect": "ottla.testing.connectors",
}


def __getattr__(name: str) -> object:
    # The pytest plugin is loaded by every pytest run of an environment: only those that use a cluster pay for it.
    if name in _HOMES:
        return getattr(_imported(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _imported(home: str) -> ModuleType:
    """Whatever an import makes is there to stay, and pytest has made much already: the collector, which would walk all
    of it again and again, took a fifth of the time until the first test with a cluster began."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(home)
    finally:
        if collects:
            gc.enable()
