"""A file of statements as one application: all its queries in one topology, one transaction per batch over all of them.

The id is the file's name unless SET 'application.id' says another; SET of streams' own settings (with or without
`ksql.streams.` before them) are the application's. Statements that belong to a server (INSERT VALUES, SELECT, SHOW, …)
are refused: a file that is run has nobody to answer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ottla.client import admin
from ottla.client.blocking.cluster import Cluster
from ottla.model.errors import Errors
from ottla.sql import tree as t
from ottla.sql.analysis.refusals import at, refuse
from ottla.sql.catalog import Catalog, PersistentQuery
from ottla.sql.compile import application_topology
from ottla.sql.errors import BAD_REQUEST, SqlError
from ottla.sql.model import DataSource
from ottla.sql.properties import FAILS, check_of_file, of_streams
from ottla.sql.registry import TRUSTED, URL, USER_INFO, registry_at
from ottla.sql.session import Session
from ottla.streams.app import StreamsApp

APPLICATION_ID: Final = "application.id"
_CHANGES: Final = (
    *(t.CreateSource, t.CreateAs, t.InsertInto, t.AlterSource, t.Drop),
    *(t.CreateType, t.CreateFunction, t.Control),
)


@dataclass(frozen=True, slots=True)
class SqlApplication:
    app: StreamsApp
    catalog: Catalog

    @property
    def queries(self) -> list[PersistentQuery]:
        return list(self.catalog.queries.values())


def load(path: str) -> SqlApplication:
    """Raises SqlError for what the file says wrongly, and ConfigError for its settings."""
    return application(_text(path), _named(Path(path).stem))


def declared(path: str) -> Mapping[str, DataSource]:
    """The sources of a file, whether queries write them or not. Raises SqlError."""
    return _session(_text(path)).catalog.sources


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:  # whoever tells it names the file
        what = error.strerror if isinstance(error, OSError) else f"no text in UTF-8 (byte {error.start})"
        raise SqlError(BAD_REQUEST, f"it cannot be read: {what}") from None


def _named(stem: str) -> str:
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", stem) or "sql"


def application(text: str, application_id: str) -> SqlApplication:
    session = _session(text)
    queries = list(session.catalog.queries.values())
    if not queries:
        raise SqlError(BAD_REQUEST, "the file has no query that writes a topic (CREATE … AS SELECT, INSERT INTO)")
    said = session.properties
    made = application_topology(queries, session.registry)
    app = StreamsApp(said.get(APPLICATION_ID, application_id), made, **_config(said))
    return SqlApplication(app, session.catalog)


def _session(text: str) -> Session:
    session = Session()
    for statement, own in session.statements(text):
        try:
            _do(session, statement, own)
        except SqlError as error:
            raise error.of(own) from None
    return session


def _do(session: Session, statement: t.Statement, text: str) -> None:
    if session.set(statement):
        if isinstance(statement, t.SetProperty):
            with at(statement):
                check_of_file(statement.name, statement.value)
            if statement.name in (URL, USER_INFO, TRUSTED):
                session.registry = registry_at(session.properties.get(URL), session.properties)
        return
    if not isinstance(statement, _CHANGES):
        words = " ".join(text.split()[:2]).upper()
        refuse(f"{words} is for a server: a file that is run declares sources and queries (ottla sql -f)", statement)
    session.change(statement, text, {})


def _config(said: Mapping[str, str]) -> dict[str, Any]:
    config = {setting: value for name, value in said.items() if (setting := of_streams(name)) is not None}
    fails = said.get(FAILS, "false").lower() == "true"
    config.setdefault("deserialization.exception.handler", "fail" if fails else "continue")
    return config


def make_topics(given: SqlApplication, cluster: Cluster) -> list[str]:
    """Those that queries write and that are not there: with as many partitions as WITH says, else as the first source
    has. The sources' own have to be there, unless PARTITIONS is said. Gives the names of what was made."""
    made: list[str] = []
    for source in given.catalog.sources.values():
        if _partitions(cluster, source.topic) is not None:
            continue
        count = source.partitions
        query = given.catalog.queries.get(source.query_id or "")
        if query is not None and count is None:
            count = _partitions(cluster, query.query.reads()[0].topic)
        if count is None:
            raise SqlError(
                BAD_REQUEST,
                f"the topic {source.topic} of {source.name} does not exist: make it, or say WITH (PARTITIONS=…)",
            )
        new = admin.NewTopic(source.topic, count, source.replicas or -1, configs=dict(source.topic_settings))
        admin.create_topics(cluster, [new])
        made.append(source.topic)
    return made


def _partitions(cluster: Cluster, topic: str) -> int | None:
    (found,) = cluster.metadata([topic]).topics
    return None if found.error_code != Errors.NONE else len(found.partitions)
