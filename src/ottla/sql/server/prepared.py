"""Pull queries that were understood before. Who asks by key asks the same again and again, with another key."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from ottla.sql import tree as t
from ottla.sql.catalog import Catalog
from ottla.sql.server.results import Client, Plain

_MOST: Final = 1_000
_LONGEST: Final = 4_096
"""Characters of what is remembered: long queries are seldom asked twice."""


@dataclass(slots=True)
class Prepared:
    client: Client
    on_loop: Plain | None = None
    """Computes rows on the loop alone: two threads cannot have it at a time."""


class PreparedQueries:
    """As long as the catalog stays what it is."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._version = catalog.version
        self._known: OrderedDict[str, Prepared] = OrderedDict()

    def get(self, query: t.Query) -> Prepared | None:
        if self._version != self._catalog.version:
            self._known.clear()
            self._version = self._catalog.version
        said = _said(query)
        if (found := self._known.get(said)) is not None:
            self._known.move_to_end(said)
        return found

    def keep(self, query: t.Query, prepared: Prepared) -> None:
        """Right after `get`: the catalog is the same."""
        assert self._version == self._catalog.version
        said = _said(query)
        if len(said) <= _LONGEST:
            self._known[said] = prepared
            if len(self._known) > _MOST:
                self._known.popitem(last=False)


def _said(query: t.Query) -> str:
    """What it says, wherever in the text. Not the query itself: 1, 1.0 and TRUE are equal there."""
    return repr(query)
