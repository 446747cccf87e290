"""The one door to Kafka's messages: `messages.ProduceRequest` and the rest, each imported when it is first asked for.

A node needs perhaps fifty of some 270 modules and the command line five, so nothing is loaded ahead. What is here at
once is small: which class stands for which request and which record.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.protocol._generated import tables
from ottla.protocol.codec import Message, Request

if TYPE_CHECKING:
    from ottla.protocol._generated.every import *  # noqa: F403


NAMES = tuple(tables.MODULES)
"""Every message and record there is."""
_APIS = {key: name for key, name, *_ in tables.APIS}
FIRST_FLEXIBLE = {key: version for key, _, _, _, version, *_ in tables.APIS}
"""By API key; None: no version is. With the names it is all that a client needs of the rows in `apis`, which are about
serving them."""


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


def request_class(key: int) -> type[Request[Message]]:
    """KeyError for a key that Kafka does not have, or no longer has."""
    cls = named(_APIS[key] + "Request")
    assert issubclass(cls, Request)
    return cls


def response_class(key: int) -> type[Message]:
    return named(_APIS[key] + "Response")


def __getattr__(name: str) -> Any:
    try:
        return named(name)
    except KeyError:
        raise AttributeError(f"Kafka has no message called {name}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})
