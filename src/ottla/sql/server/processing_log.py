"""The processing log as the server has it: a topic, the stream over it, and what push queries write there."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from ottla.client import admin
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer
from ottla.client.errors import ClientError, KafkaError
from ottla.model.errors import Errors
from ottla.sql.model import Columns
from ottla.sql.processing_log.entries import DESERIALIZATION, SOURCE_STEP, TOPIC, Problem, entry
from ottla.sql.processing_log.review import Review
from ottla.sql.server.merging import Placed
from ottla.sql.server.results import Computing, Row, raw_of
from ottla.sql.settings import SqlSettings

logger = logging.getLogger(__name__)

_WAITING: Final = 1_000
"""Entries that wait to be written: what comes in faster than that is told as a number."""


def log_topic(settings: SqlSettings) -> str:
    return str(settings["ksql.logging.processing.topic.name"]) or f"{settings['ksql.service.id']}{TOPIC}"


async def prepare(cluster: Cluster, settings: SqlSettings) -> bool:
    """Whether there is a log. A server goes on without one. Raises ClientError if no broker answers."""
    topic = log_topic(settings)
    response = await cluster.metadata([topic])
    if response.topics[0].error_code == Errors.NONE:
        return True
    if not settings["ksql.logging.processing.topic.auto.create"]:
        return False
    factor = max(min(settings["ksql.logging.processing.topic.replication.factor"], len(response.brokers)), 1)
    new = admin.NewTopic(topic, settings["ksql.logging.processing.topic.partitions"], factor)
    outcome = (await admin.create_topics(cluster, [new]))[topic]
    if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
        logger.warning("there is no processing log: topic %s cannot be made: %s", topic, outcome)
        return False
    return True


class ProcessingLog:
    """`note` takes what went wrong, on the loop and without waiting; `follow` writes it."""

    def __init__(self, producer: Producer, topic: str, *, rows: bool) -> None:
        self._producer = producer
        self._topic = topic
        self._rows = rows
        self._waiting: deque[tuple[str, Problem]] = deque()
        self._untold: dict[str, int] = {}
        """By query: what there was no room for."""
        self._some = asyncio.Event()

    def note(self, query_id: str, problems: Sequence[Problem]) -> None:
        for problem in problems:
            if len(self._waiting) < _WAITING:
                self._waiting.append((query_id, problem))
            else:
                self._untold[query_id] = self._untold.get(query_id, 0) + 1
        if problems:
            self._some.set()

    async def follow(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            try:
                await self._write()
            except ClientError as error:
                logger.warning("the processing log cannot be written: %s", error)

    async def _write(self) -> None:
        while self._waiting:
            await self._post(*self._waiting.popleft())
        for query_id, number in self._untold.items():
            message = f"{number} more records had something wrong with them: they came too fast to be told of each"
            await self._post(query_id, Problem(DESERIALIZATION, SOURCE_STEP, message))
        self._untold = {}
        await self._producer.flush()

    async def _post(self, query_id: str, problem: Problem) -> None:
        told = entry(query_id, problem, time.time_ns() // 1_000_000, rows=self._rows)
        await self._producer.post(self._topic, told, key=query_id.encode())


class Noticing:
    """Rows of a query, and what went wrong on the way to them: records are looked at twice if something did, or may
    have."""

    def __init__(self, work: Computing, review: Review) -> None:
        self.columns: Columns = work.columns
        self._work = work
        self._review = review
        self._problems: list[Problem] = []

    @property
    def unread(self) -> int:
        return self._work.unread

    def rows(self, records: Sequence[Placed], now: int) -> list[Row]:
        before = self._work.unread
        made = self._work.rows(records, now)
        if self._review.fallible or self._work.unread != before:
            for each in records:
                self._problems += self._review.problems(raw_of(*each), now)
        return made

    def close(self) -> None:
        self._work.close()

    def taken(self) -> list[Problem]:
        """What there was since the last time."""
        found, self._problems = self._problems, []
        return found
