"""The connector: documents in bulks, those that are refused one by one."""

import logging
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from ottla.connect import spi
from ottla.connect.connectors.elasticsearch.bulk import Connection, Unreachable, Verdict
from ottla.connect.connectors.elasticsearch.config import ElasticsearchConfig
from ottla.connect.connectors.elasticsearch.documents import Action, Documents, mapping_of
from ottla.connect.connectors.elasticsearch.lanes import Lanes, Refusals
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema

logger = logging.getLogger(__name__)

_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_LONGEST_PAUSE_S: Final = 30.0


@dataclass(slots=True)
class _Request:
    places: list[int] = field(default_factory=list)
    """Of its documents among the records."""
    actions: list[Action] = field(default_factory=list)
    size: int = 0

    def add(self, place: int, action: Action) -> None:
        self.places.append(place)
        self.actions.append(action)
        self.size += len(action.lines)


class ElasticsearchSink(spi.Sink[ElasticsearchConfig]):
    exactly_once: ClassVar[bool] = True
    first_records: ClassVar[int] = 10_000

    def __init__(self, config: ElasticsearchConfig, name: str) -> None:
        super().__init__(config, name)
        self._documents = Documents(config)
        context = _context(config)
        self._asking = Connection(config, context)
        """About indices."""
        self._lanes = Lanes([Connection(config, context) for _ in range(self._documents.most_at_once)])
        self._known: set[str] = set()

    def validate(self) -> None:
        for url in self.config.connection_url:
            if not url.startswith(("http://", "https://")):
                raise spi.ConfigRefused("connection.url", f"{url!r} does not begin with http:// or https://")
        if self.config.data_stream is not None and not self.config.data_stream_dataset:
            raise spi.ConfigRefused("data.stream.dataset", "is missing: a data stream is named type-dataset-topic")

    @property
    def takes_json(self) -> bool:
        return self._documents.takes_json

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        try:
            refused = self._given(batch.records)
            for columns in batch.columns:
                self._give_json(columns)
        except BaseException:
            self._lanes.wait()
            raise
        told = self._lanes.refused()
        return [*refused, *(spi.Refused(place, reason) for place, reason in told if self._is_told(reason))]

    def _given(self, records: Sequence[ConnectRecord]) -> list[spi.Refused]:
        """All that are documents are under way; those that are none are refused."""
        refused: list[spi.Refused] = []
        request = _Request()
        for place, record in enumerate(records):
            try:
                action = self._documents.action(record)
            except spi.BadRecord as error:
                if not self.config.drop_invalid_message:
                    refused.append(spi.Refused(place, error))
                continue
            if action is None:
                continue
            self._know(action.into, record.topic, record.value_schema)
            if self._is_full(request, action):
                self._send(request)
                request = _Request()
            request.add(place, action)
        self._send(request)
        return refused

    def _give_json(self, columns: spi.Columns) -> None:
        actions = self._documents.actions(columns)
        self._know(actions[0].into, columns.topic, None)
        request = _Request()
        for place, action in enumerate(actions):
            if self._is_full(request, action):
                self._send(request)
                request = _Request()
            request.add(place, action)
        self._send(request)

    def _is_full(self, request: "_Request", action: Action) -> bool:
        limit = self.config.bulk_size_bytes
        if not request.actions:
            return False
        return len(request.actions) == self.config.batch_size or 0 < limit < request.size + len(action.lines)

    def _send(self, request: "_Request") -> None:
        if request.actions:
            self._lanes.give(lambda connection: self._sent(connection, request))

    def close(self) -> None:
        self._asking.close()
        self._lanes.close()

    def _know(self, index: str, topic: str, value_schema: Schema | None) -> None:
        """An index is made before its first document, with a mapping where the record's schema gives one."""
        if index in self._known or self.config.data_stream is not None:
            return
        ignored = self.config.schema_ignore or topic in self.config.topic_schema_ignore
        schema = None if ignored else value_schema
        try:
            if not self._asking.has_index(index):
                self._asking.make_index(index, None if schema is None else mapping_of(schema))
        except Unreachable as error:
            raise spi.TryAgain(str(error)) from error
        self._known.add(index)

    def _sent(self, connection: Connection, request: "_Request") -> Refusals:
        """Those that were refused for good, with the reason. Raises TryAgain."""
        refused: Refusals = []
        places, actions = request.places, request.actions
        pause_s = self.config.retry_backoff_ms / 1000
        for attempt in range(self.config.max_retries + 1):
            if attempt:
                time.sleep(min(pause_s * 2 ** (attempt - 1), _LONGEST_PAUSE_S))
            try:
                verdicts = connection.bulk([action.lines for action in actions])
            except Unreachable as error:
                reason = str(error)
                continue
            busy = []
            for at, (place, action, verdict) in enumerate(zip(places, actions, verdicts, strict=True)):
                if verdict.passing:
                    busy.append(at)
                    reason = verdict.reason or "the server is busy"
                elif not _is_written(action, verdict):
                    refused.append((place, verdict.reason or f"the server answered {verdict.status}"))
            if not busy:
                return refused
            places, actions = [places[at] for at in busy], [actions[at] for at in busy]
        raise spi.TryAgain(
            f"{len(actions)} documents could not be written after {self.config.max_retries} retries: {reason}"
        )

    def _is_told(self, reason: str) -> bool:
        behaviour = self.config.behavior_on_malformed_documents.upper()
        if behaviour == "WARN":
            logger.warning("%s: a document was refused and left out: %s", self.name, reason)
        return behaviour == "FAIL"


def _is_written(action: Action, verdict: Verdict) -> bool:
    """Also where something newer is there already, or nothing to delete."""
    return (
        verdict.reason is None
        or (action.versioned and verdict.status == _CONFLICT)
        or (action.lines.startswith(b'{"delete"') and verdict.status == _NOT_FOUND)
    )


def _context(config: ElasticsearchConfig) -> ssl.SSLContext | None:
    if not config.tls:
        return None
    from ottla.client.security import SecurityRefused, security  # noqa: PLC0415  for https alone

    try:
        return security({"security.protocol": "SSL", **config.tls}).tls
    except SecurityRefused as error:
        raise spi.ConfigRefused("elastic.https", str(error)) from error
