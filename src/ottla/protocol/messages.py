"""The one door to Kafka's messages: `messages.ProduceRequest` and the rest, each imported when it is first asked for.

A node needs perhaps fifty of some 270 modules and the command line five, so nothing is loaded ahead. What is here at
once is small: which API keys and versions exist, and which class stands for which record.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.protocol._generated import tables
from ottla.protocol.codec import Message

if TYPE_CHECKING:
    from ottla.protocol._generated.every import *  # noqa: F403


NAMES = tuple(tables.MODULES)
"""Every message and record there is."""


class Api(NamedTuple):
    key: int
    name: str
    min_version: int
    max_version: int
    """What the schemas have; see `stable_max` for what may be advertised."""
    first_flexible: int | None
    listeners: tuple[str, ...]
    """broker, controller or both."""
    latest_unstable: bool

    @property
    def stable_max(self) -> int:
        return self.max_version - self.latest_unstable

    @property
    def request(self) -> str:
        return self.name + "Request"

    @property
    def response(self) -> str:
        return self.name + "Response"

    def is_flexible(self, version: int) -> bool:
        return self.first_flexible is not None and version >= self.first_flexible


API: dict[int, Api] = {row[0]: Api(*row) for row in tables.APIS}
"""Every live key; 4 to 7, of the ZooKeeper time, are gone."""


class Classes(Mapping[int, type[Message]]):
    """Record type to class; a class is imported when its type is first asked for."""

    __slots__ = ("_names",)

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names

    def __getitem__(self, key: int) -> type[Message]:
        return named(self._names[key])

    def __iter__(self) -> Iterator[int]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


METADATA_RECORDS = Classes(tables.METADATA)
"""What the metadata log holds, by record type."""
REMOTE_LOG_RECORDS = Classes(tables.REMOTE_LOG)
"""What __remote_log_metadata holds."""
GROUP_RECORDS = tables.GROUP
"""What __consumer_offsets holds: record type to the names of key and value class."""
TRANSACTION_RECORDS = tables.TRANSACTION
"""The same for __transaction_state."""
SHARE_RECORDS = tables.SHARE
"""The same for __share_group_state."""


def named(name: str) -> type[Message]:
    """The class of that name; KeyError if Kafka has none."""
    found = globals().get(name)
    if found is None:
        found = getattr(import_module("ottla.protocol._generated." + tables.MODULES[name]), name)
        globals()[name] = found
    cls: type[Message] = found
    return cls


def request_class(key: int) -> type[Message]:
    """KeyError for a key that Kafka does not have, or no longer has."""
    return named(API[key].request)


def response_class(key: int) -> type[Message]:
    return named(API[key].response)


def __getattr__(name: str) -> Any:
    try:
        return named(name)
    except KeyError:
        raise AttributeError(f"Kafka has no message called {name}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})
