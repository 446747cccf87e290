"""The connector: documents in bulks, those that are refused one by one."""

import logging
import ssl
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Final

from ottla.connect import spi
from ottla.connect.connectors.elasticsearch.bulk import Connection, Unreachable, Verdict
from ottla.connect.connectors.elasticsearch.config import ElasticsearchConfig
from ottla.connect.connectors.elasticsearch.documents import Action, Documents, mapping_of
from ottla.connect.data.record import ConnectRecord

logger = logging.getLogger(__name__)

_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_LONGEST_PAUSE_S: Final = 30.0


class ElasticsearchSink(spi.Sink[ElasticsearchConfig]):
    exactly_once: ClassVar[bool] = True
    first_records: ClassVar[int] = 10_000

    def __init__(self, config: ElasticsearchConfig, name: str) -> None:
        super().__init__(config, name)
        self._documents = Documents(config)
        context = _context(config)
        self._connections = [Connection(config, context) for _ in range(self._documents.most_at_once)]
        """One for each request that is under way."""
        self._known: set[str] = set()

    def validate(self) -> None:
        for url in self.config.connection_url:
            if not url.startswith(("http://", "https://")):
                raise spi.ConfigRefused("connection.url", f"{url!r} does not begin with http:// or https://")
        if self.config.data_stream is not None and not self.config.data_stream_dataset:
            raise spi.ConfigRefused("data.stream.dataset", "is missing: a data stream is named type-dataset-topic")

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        refused: list[spi.Refused] = []
        places: list[int] = []
        actions: list[Action] = []
        for place, record in enumerate(batch.records):
            try:
                action = self._documents.action(record)
            except spi.BadRecord as error:
                if not self.config.drop_invalid_message:
                    refused.append(spi.Refused(place, error))
                continue
            if action is not None:
                self._know(action.into, record)
                places.append(place)
                actions.append(action)
        answers = self._side_by_side(list(self._requests(actions)), actions)
        refused += [spi.Refused(places[at], reason) for at, reason in answers if self._is_told(reason)]
        return refused

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _know(self, index: str, record: ConnectRecord) -> None:
        """An index is made before its first document, with a mapping where the record's schema gives one."""
        if index in self._known or self.config.data_stream is not None:
            return
        ignored = self.config.schema_ignore or record.topic in self.config.topic_schema_ignore
        schema = None if ignored else record.value_schema
        try:
            first = self._connections[0]
            if not first.has_index(index):
                first.make_index(index, None if schema is None else mapping_of(schema))
        except Unreachable as error:
            raise spi.TryAgain(str(error)) from error
        self._known.add(index)

    def _requests(self, actions: Sequence[Action]) -> Iterator[list[int]]:
        """Places in `actions`, so many at a time as one request may have."""
        limit = self.config.bulk_size_bytes
        chosen: list[int] = []
        size = 0
        for at, action in enumerate(actions):
            if chosen and (len(chosen) == self.config.batch_size or 0 < limit < size + len(action.lines)):
                yield chosen
                chosen, size = [], 0
            chosen.append(at)
            size += len(action.lines)
        if chosen:
            yield chosen

    def _side_by_side(self, requests: Sequence[list[int]], actions: Sequence[Action]) -> list[tuple[int, str]]:
        """The server works on several at once. What fails is told when all of them have come back."""
        lanes = self._connections[: len(requests)]

        def sent(lane: int) -> list[tuple[int, str]]:
            chosen = requests[lane :: len(lanes)]
            return [told for each in chosen for told in self._sent(lanes[lane], each, actions)]

        if len(lanes) < 2:
            return [told for lane in range(len(lanes)) for told in sent(lane)]
        with ThreadPoolExecutor(len(lanes)) as pool:
            return [told for found in pool.map(sent, range(len(lanes))) for told in found]

    def _sent(self, connection: Connection, chosen: list[int], actions: Sequence[Action]) -> list[tuple[int, str]]:
        """Those that were refused for good, with the reason. Raises TryAgain."""
        refused: list[tuple[int, str]] = []
        pause_s = self.config.retry_backoff_ms / 1000
        for attempt in range(self.config.max_retries + 1):
            if attempt:
                time.sleep(min(pause_s * 2 ** (attempt - 1), _LONGEST_PAUSE_S))
            try:
                verdicts = connection.bulk([actions[at].lines for at in chosen])
            except Unreachable as error:
                reason = str(error)
                continue
            busy = []
            for at, verdict in zip(chosen, verdicts, strict=True):
                if verdict.passing:
                    busy.append(at)
                    reason = verdict.reason or "the server is busy"
                elif not _is_written(actions[at], verdict):
                    refused.append((at, verdict.reason or f"the server answered {verdict.status}"))
            chosen = busy
            if not chosen:
                return refused
        raise spi.TryAgain(
            f"{len(chosen)} documents could not be written after {self.config.max_retries} retries: {reason}"
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
