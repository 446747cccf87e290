"""Validation at the broker: records must name a schema that is registered under their topic's subject, if the topic
asks for it, and be a record of it, if the topic asks for that as well.

What is asked of a registry is a port (`Schemas`), which the node fills in: this room knows no registry. A topic that
asks for nothing is never seen here: `Log.is_plain` already tells its batches from others.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from crc32c import crc32c

from ottla.model.errors import Errors
from ottla.net.peer import Unreachable
from ottla.protocol import batch as b
from ottla.protocol import compression
from ottla.protocol.messages import ProduceRequest
from ottla.protocol.payloads import Span, header_value, spans
from ottla.protocol.records import CorruptBatch, NewRecord, Record, build_batch, read_records
from ottla.storage.answers import Rejected
from ottla.storage.config import LogConfig, SchemaRules
from ottla.storage.validate import RecordError

if TYPE_CHECKING:
    from ottla.broker.coordination.courier import Neighbours
    from ottla.metadata.image import MetadataImage

PartName = Literal["key", "value"]

_MOST_SCHEMAS: Final = 100
"""In one batch: each may have to be asked for."""
_MARK: Final = 5
_LONG_MARK: Final = 17
_IN_HEADER: Final[dict[PartName, bytes]] = {"key": b"__key_schema_id", "value": b"__value_schema_id"}
_LANE: Final = "dead-letters"
_NO_HEADERS: Final = 0
_ORIGIN: Final = "__connect.errors.topic"


class Undecided(Exception):
    """The registry cannot be asked: nothing is known against the records, and nothing for them."""

    error = Errors.REQUEST_TIMED_OUT


class Incapable(Undecided):
    """Nor will it be known later: the producer need not try again, and nothing becomes a dead letter."""

    error = Errors.INVALID_RECORD


class Schemas(Protocol):
    """What the broker asks of a schema registry. A mark is 0 and an id, or 1 and a GUID, as records have it."""

    async def objection(self, topic: str, part: PartName, strategy: str, mark: bytes) -> str:
        """Why records of that topic may not have this schema; empty if they may. Raises Undecided."""

    async def objections(self, mark: bytes, payloads: Sequence[bytes]) -> list[str]:
        """Why each payload is no record of this schema; empty if it is one. Raises Undecided."""


class Passed(NamedTuple):
    """What is left of a batch, if not all of it was good."""

    batch: bytearray
    errors: tuple[RecordError, ...]


Verdict = Rejected | Passed | None
"""None: nothing is to be said against it."""


class Validation:
    __slots__ = ("_image", "_neighbours", "_schemas")

    def __init__(self, schemas: Schemas, neighbours: "Neighbours", image: Callable[[], "MetadataImage"]) -> None:
        self._schemas = schemas
        self._neighbours = neighbours
        self._image = image

    async def judge(self, topic: str, config: LogConfig, batch: memoryview) -> Verdict:
        """What cannot even be read as a batch passes: the log says better what is wrong with it."""
        rules = config.validation
        assert rules is not None
        if len(batch) < b.HEADER_SIZE:
            return None
        header = b.read_header(batch)
        whole = header.magic == b.MAGIC_V2 and header.size == len(batch)
        if not whole or header.is_control or header.crc != b.computed_crc(batch):
            return None
        try:
            body = bytes(batch[b.HEADER_SIZE :])
            if header.codec:
                body = bytes(compression.decompress(header.codec, body, config.unpacking))
            found = spans(body, header.record_count)
            errors = await self._errors(topic, rules, body, found)
        except (CorruptBatch, compression.DecompressionError):
            return None
        except Undecided as undecided:
            return Rejected(undecided.error, str(undecided))
        if not errors:
            return None
        if not rules.dead_letters:
            return Rejected(
                Errors.INVALID_RECORD, f"{len(errors)} of {len(found)} records: {errors[0].message}", errors
            )
        return await self._buried(topic, rules, batch, body, errors)

    # ---- looking

    async def _errors(self, topic: str, rules: SchemaRules, body: bytes, found: list[Span]) -> tuple[RecordError, ...]:
        errors: dict[int, str] = {}
        parts: tuple[tuple[PartName, str | None], ...] = (("key", rules.key), ("value", rules.value))
        for part, strategy in parts:
            if strategy is not None:
                await self._look_at(topic, part, strategy, rules, body, found, errors)
        return tuple(RecordError(index, errors[index]) for index in sorted(errors))

    async def _look_at(
        self,
        topic: str,
        part: PartName,
        strategy: str,
        rules: SchemaRules,
        body: bytes,
        found: list[Span],
        errors: dict[int, str],
    ) -> None:
        by_mark = _by_mark(part, body, found)
        if len(by_mark) > _MOST_SCHEMAS:
            raise Undecided(f"a batch names {len(by_mark)} schemas, more than {_MOST_SCHEMAS}")
        for mark, members in by_mark.items():
            objection = (
                await self._schemas.objection(topic, part, strategy, mark)
                if _is_mark(mark)
                else f"the {part} names no schema: it begins with neither 0 and an id nor has the header "
                f"{_IN_HEADER[part].decode()}"
            )
            if objection:
                errors |= {index: objection for index, _, _ in members}
            elif rules.decode:
                payloads = [
                    before + body[start:end] if before else body[start:end] for _, before, (start, end) in members
                ]
                told = await self._schemas.objections(mark, payloads)
                errors |= {index: why for (index, _, _), why in zip(members, told, strict=True) if why}

    # ---- dead letters

    async def _buried(
        self, topic: str, rules: SchemaRules, batch: memoryview, body: bytes, errors: tuple[RecordError, ...]
    ) -> Verdict:
        """The bad ones are safe elsewhere before anything is said to the producer: they may get there twice."""
        records = list(read_records(batch))
        bad = [records[each.batch_index] for each in errors]
        if any(name == _ORIGIN for record in bad for name, _ in record.headers):
            return Rejected(Errors.INVALID_RECORD, f"a dead letter does not pass either: {errors[0].message}", errors)
        letters = [_letter(topic, record, each.message) for record, each in zip(bad, errors, strict=True)]
        failure = await self._send(rules.dead_letters, letters)
        if failure is not None:
            return Rejected(Errors.REQUEST_TIMED_OUT, f"the dead letter topic {rules.dead_letters}: {failure}", errors)
        return Passed(_without(batch, body, errors), errors)

    async def _send(self, name: str, letters: list[NewRecord]) -> str | None:
        """What went wrong. A broker asks the leader as any producer would, also if it is that leader itself."""
        topic = self._image().topics.get(name)
        led = [(index, each.leader) for index, each in topic.partitions.items() if each.leader >= 0] if topic else []
        if topic is None or not led:
            return "there is no such topic, or nobody leads it"
        key = letters[0].key
        index, leader = led[0 if key is None else crc32c(key) % len(led)]
        address = self._neighbours.address(leader)
        if address is None:
            return f"nobody knows where broker {leader} listens"
        data = ProduceRequest.PartitionProduceData(index=index, records=memoryview(build_batch(letters)))
        timeout_ms = self._neighbours.configs.settings.get_int("request.timeout.ms")
        request = ProduceRequest(
            acks=-1,
            timeout_ms=timeout_ms,
            topic_data=[ProduceRequest.TopicProduceData(name=name, topic_id=topic.id, partition_data=[data])],
        )
        try:
            answer = await self._neighbours.peers.ask(address, request, timeout_ms=timeout_ms, lane=_LANE)
        except Unreachable as error:
            return str(error)
        result = answer.responses[0].partition_responses[0]
        return None if not result.error_code else Errors(result.error_code).name


Member = tuple[int, bytes, tuple[int, int]]
"""The index of a record, what of its header belongs to the payload, and where the rest of it lies."""


def _by_mark(part: PartName, body: bytes, found: list[Span]) -> dict[bytes, list[Member]]:
    """Nothing at all (null) needs no schema: a tombstone, a record without a key."""
    by_mark: dict[bytes, list[Member]] = {}
    name = _IN_HEADER[part]
    first = 0 if part == "key" else 2
    for index, span in enumerate(found):
        start, end = span[first], span[first + 1]
        if start < 0:
            continue
        if body[span[4]] != _NO_HEADERS and (told := header_value(body, span[4], name)) is not None:
            size = _LONG_MARK if told[:1] == b"\1" else _MARK
            mark, member = told[:size], (index, told[size:], (start, end))
        else:
            mark, member = body[start : min(start + _MARK, end)], (index, b"", (start + _MARK, end))
        by_mark.setdefault(mark, []).append(member)
    return by_mark


def _is_mark(mark: bytes) -> bool:
    return (len(mark) == _MARK and mark[0] == 0) or (len(mark) == _LONG_MARK and mark[0] == 1)


def _letter(topic: str, record: Record, why: str) -> NewRecord:
    """As Connect's dead letters tell where they come from."""
    told = (
        (_ORIGIN, topic.encode()),
        ("__connect.errors.exception.message", why.encode()),
    )
    return NewRecord(record.key, record.value, record.timestamp, (*record.headers, *told))


def _without(batch: memoryview, body: bytes, errors: tuple[RecordError, ...]) -> bytearray:
    """The same batch without these records, as compaction leaves one: the offsets and sequences of the others stay."""
    from ottla.storage.cleaner.records import pick  # noqa: PLC0415  a node has no other use for it

    header = b.read_header(batch)
    flags = bytearray([1]) * header.record_count
    for each in errors:
        flags[each.batch_index] = 0
    picked = pick(body, 0, flags, header.base_timestamp)
    out = bytearray(batch[: b.HEADER_SIZE])
    out += compression.compress(header.codec, picked.records) if header.codec else picked.records
    b.put_kept(out, picked.max_timestamp if picked.number else header.max_timestamp, picked.number)
    b.seal(out)
    return out
