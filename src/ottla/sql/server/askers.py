"""On whose behalf a statement runs.

The server reaches the brokers as itself, whoever asks. So that nobody gets by way of it what the cluster would not give
him, each statement is judged first by the rights of who sent it: READ on the topics that it reads, WRITE on those that
it fills, CREATE and DELETE where it makes or removes one, ALTER on the cluster where it brings code along. Names and
columns of streams and tables are known to all who may log in, as in ksqlDB.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.model.permissions import (
    ALTER_CLUSTER,
    CLUSTER_NAME,
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DELETE_TOPIC,
    READ_TOPIC,
    WRITE_TOPIC,
    Permission,
)
from ottla.sql.catalog import (
    Catalog,
    Change,
    DefaultSet,
    QueryEnded,
    QueryPaused,
    QuerySet,
    SourceDropped,
    SourceSet,
)
from ottla.sql.errors import DENIED, SqlError
from ottla.sql.model import DataSource

ANONYMOUS: Final = "User:ANONYMOUS"


def _everything(_: Permission, __: str) -> bool:
    return True


def _nothing(_: Permission, __: str) -> str:
    raise AssertionError("who may do everything is refused nothing")


@dataclass(frozen=True, slots=True)
class Asker:
    principal: str = ANONYMOUS
    host: str = ""
    allows: Callable[[Permission, str], bool] = _everything
    refused: Callable[[Permission, str], str] = _nothing
    """Writes a refusal down, and says what is missing."""
    shown: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The headers by which he proved who he is, for a service that a statement is passed on to."""

    def check(self, permission: Permission, name: str = CLUSTER_NAME) -> None:
        """Raises SqlError, which says what is missing. It is the same whether the topic exists or not."""
        if self.allows(permission, name):
            return
        raise SqlError(DENIED, self.refused(permission, name))

    def check_reads(self, sources: Iterable[DataSource]) -> None:
        """Raises SqlError."""
        for source in sources:
            self.check(READ_TOPIC, source.topic)

    def check_create(self, topic: str) -> None:
        """As brokers decide it. Raises SqlError."""
        if not self.allows(CREATE_CLUSTER, CLUSTER_NAME):
            self.check(CREATE_TOPIC, topic)

    def check_changes(self, changes: Sequence[Change], catalog: Catalog) -> None:
        """Of a statement that is about to be logged; the catalog is as it is before. Raises SqlError."""
        filled = {change.query.sink.topic for change in changes if isinstance(change, QuerySet)}
        for change in changes:
            match change:
                case SourceSet(source):
                    self.check(WRITE_TOPIC if source.topic in filled else READ_TOPIC, source.topic)
                case QuerySet(query):
                    self.check_reads(query.query.reads())
                    self.check(WRITE_TOPIC, query.sink.topic)
                case DefaultSet():
                    self.check(ALTER_CLUSTER)
                case QueryEnded(query_id) | QueryPaused(query_id):
                    self.check(WRITE_TOPIC, catalog.queries[query_id].sink.topic)
                case SourceDropped(name, deleted_topic):
                    self.check(READ_TOPIC, catalog.sources[name].topic)
                    if deleted_topic is not None:
                        self.check(DELETE_TOPIC, deleted_topic)

    def check_ends(self, owner: str) -> None:
        """A query of a client is its own; others who end it may change the cluster. Raises SqlError."""
        if owner != self.principal:
            self.check(ALTER_CLUSTER)


ANYBODY: Final = Asker()
"""Where nobody has to say who he is."""
