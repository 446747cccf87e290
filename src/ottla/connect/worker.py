"""Runs the cores of one worker: reads the topics into them, decides and writes as leader, does what its duties say.

A record of `connect-configs` is the only way a wish becomes true, also for the worker that wrote it. Who leads is told
by the group; the topic refuses whoever only thinks so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer
from ottla.client.errors import ClientError
from ottla.connect import config_records, offsets, statuses
from ottla.connect.config_records import ConnectorPut, LoggerLevelPut, RestartAsked, Unreadable
from ottla.connect.configs import Configs
from ottla.connect.counts import WorkerCounts
from ottla.connect.definitions import ConfigError
from ottla.connect.duties import Duties, Effect, Say, StandBy, StartJob, StopJob
from ottla.connect.herder import Command, Herder, PutSessionKey, Refusal, Reply
from ottla.connect.journal import Follower, Superseded, Writer
from ottla.connect.orders import ConnectorRunner, Event, Order, Report, Resolved
from ottla.connect.plugins import Catalogue, PluginType
from ottla.connect.providers import Providers, masked
from ottla.connect.statuses import Statuses
from ottla.model.ids import Millis, TopicPartition
from ottla.protocol.records import Record as LogRecord

logger = logging.getLogger(__name__)

_TICK_S: Final = 1.0
_KEY_BYTES: Final = 32
ALGORITHM: Final = "HmacSHA256"


class NotLeading(Exception):
    """Another worker decides; `url` is its address, None while nobody is known to."""

    def __init__(self, url: str | None) -> None:
        super().__init__("another worker leads")
        self.url = url


class State:
    """What the three topics say, replayed."""

    __slots__ = ("configs", "offsets", "statuses")

    def __init__(self) -> None:
        self.configs = Configs()
        self.statuses = Statuses()
        self.offsets = offsets.Offsets()


class Topics:
    """The three followers, and who writes."""

    __slots__ = ("configs", "offsets", "producer", "statuses", "writer")

    def __init__(
        self, configs: Follower, status: Follower, offset: Follower, writer: Writer, producer: Producer
    ) -> None:
        self.configs = configs
        self.statuses = status
        self.offsets = offset
        self.writer = writer
        self.producer = producer


@dataclass(frozen=True, slots=True)
class Lead:
    mine: bool = False
    url: str | None = None
    """Of who leads; None while nobody is known to."""


class Worker:
    """`lead` is set by the membership; everything else follows from the topics."""

    __slots__ = (
        "_closing",
        "_lanes",
        "_live",
        "_plugins",
        "_secrets",
        "_tasks",
        "_writing",
        "counts",
        "duties",
        "herder",
        "jobs",
        "lead",
        "on_connectors",
        "on_logger",
        "providers",
        "state",
        "topics",
    )

    def __init__(
        self,
        state: State,
        herder: Herder,
        duties: Duties,
        jobs: ConnectorRunner,
        providers: Providers,
        plugins: Catalogue,
    ) -> None:
        self.state = state
        self.herder = herder
        self.duties = duties
        self.jobs = jobs
        self.providers = providers
        self._plugins = plugins
        self.counts = WorkerCounts()
        self.topics: Topics | None = None
        self.lead = Lead()
        self.on_connectors: Callable[[], None] = lambda: None
        """Connectors came or went: the group has to share them out anew."""
        self.on_logger: Callable[[LoggerLevelPut], None] = lambda _: None
        self._writing = asyncio.Lock()
        self._live = False
        """The topics were read to their ends: restarts and levels that come now are meant for us."""
        self._lanes: dict[str, asyncio.Task[None]] = {}
        """By connector: what is being done for it, one thing after the other."""
        self._secrets: dict[str, tuple[str, ...]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    @property
    def leads(self) -> bool:
        return self.lead.mine

    # ---- its life

    def follow(self, topics: Topics) -> None:
        self.topics = topics
        for follower in (topics.configs, topics.statuses, topics.offsets):
            self._begin(follower.run(), f"connect-{follower.topic}")

    async def begin(self) -> None:
        """Returns when the topics are read. Raises ClientError."""
        assert self.topics is not None
        await asyncio.gather(*(each.caught_up() for each in self._followers()))
        self._live = True
        loop = asyncio.get_running_loop()

        def heard(report: Report) -> None:
            loop.call_soon_threadsafe(self._reported, report)

        self.jobs.listen(heard)
        self._begin(self._mind_time(), "connect-time")

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    def _followers(self) -> tuple[Follower, ...]:
        assert self.topics is not None
        return self.topics.configs, self.topics.statuses, self.topics.offsets

    @property
    def ready(self) -> bool:
        return self._live

    def troubles(self) -> list[str]:
        found = [f"{each.topic}: {each.trouble}" for each in self._followers() if each.trouble] if self.topics else []
        dead = [task for task in self._tasks if task.done() and not task.cancelled() and task.exception() is not None]
        return found + [f"{task.get_name()} failed: {task.exception()}" for task in dead]

    async def close(self) -> None:
        """The jobs end first, so that others take over where they ended."""
        self._closing = True
        self.perform(self.duties.assigned((), self.duties.generation, now_ms()))
        await self.settled()
        if self.topics is not None:
            with suppress(ClientError):
                await self.topics.producer.flush()

    async def stop(self) -> None:
        for task in (*self._tasks, *self._lanes.values()):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._lanes.values(), return_exceptions=True)

    # ---- what the topics say

    def replay_config(self, record: LogRecord) -> None:
        try:
            found = config_records.decode(record.key, record.value)
        except Unreadable as error:
            logger.error("%s at offset %d is passed over", error, record.offset)
            return
        connectors = self.state.configs.connectors
        name = found.connector if isinstance(found, ConnectorPut) else None
        known = name in connectors
        self.state.configs.replay(found, record.offset)
        if not self._live:
            return
        if isinstance(found, RestartAsked):
            self.perform(self.duties.restart(found, now_ms()))
        elif isinstance(found, LoggerLevelPut):
            self.on_logger(found)
        elif (name in connectors) != known:
            self.on_connectors()

    def replay_status(self, record: LogRecord) -> None:
        try:
            self.state.statuses.replay(statuses.decode(record.key, record.value))
        except Unreadable as error:
            logger.warning("%s at offset %d is passed over", error, record.offset)

    def replay_offset(self, record: LogRecord) -> None:
        try:
            self.state.offsets.replay(offsets.decode(record.key, record.value))
        except Unreadable as error:
            logger.warning("%s at offset %d is passed over", error, record.offset)

    def configs_heard(self) -> None:
        if self._live and not self._closing:
            self.perform(self.duties.reconcile(now_ms()))

    # ---- commands

    async def submit(self, command: Command) -> Reply:
        """The reply to a command, once it is replayed. Raises NotLeading, ClientError."""
        async with self._writing:
            if not self.leads or not self._live:
                raise NotLeading(self.lead.url)
            assert self.topics is not None
            if not self.topics.writer.taken:
                await self.topics.writer.take()
                await self.topics.configs.caught_up()
            decision = self.herder.decide(command, now_ms())
            if decision.records and not isinstance(decision.reply, Refusal):
                await self._write(decision.records)
            return decision.reply

    async def _write(self, records: Iterable[config_records.ConfigRecord]) -> None:
        assert self.topics is not None
        try:
            end = await self.topics.writer.write([config_records.encode(record) for record in records])
        except Superseded as error:
            self.lead = Lead()
            raise NotLeading(None) from error
        await self.topics.configs.reached({self.topics.writer.place: end})

    async def write_offsets(self, changes: Sequence[tuple[bytes, bytes | None]], topic: str) -> None:
        """Into the offsets topic; returns when they are replayed. Raises ClientError."""
        assert self.topics is not None
        written = await asyncio.gather(*[self.topics.producer.send(topic, value, key=key) for key, value in changes])
        ends: dict[TopicPartition, int] = {}
        for each in written:
            ends[each.place] = max(ends.get(each.place, 0), each.offset + 1)
        if topic == self.topics.offsets.topic:
            await self.topics.offsets.reached(ends)

    async def _mind_time(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.perform(self.duties.tick(now_ms()))
            if self.leads:
                self.perform(self.duties.sweep())
                try:
                    await self._lead()
                except (ClientError, NotLeading) as error:
                    logger.warning("what a leader puts in order waits: %s", error)

    async def _lead(self) -> None:
        import secrets  # noqa: PLC0415  for who leads

        if self.herder.needs_session_key(now_ms()):
            await self.submit(PutSessionKey(secrets.token_bytes(_KEY_BYTES), ALGORITHM))
        if self.herder.tick(now_ms()).records:
            async with self._writing:
                assert self.topics is not None
                if self.leads and self.topics.writer.taken:
                    await self._write(self.herder.tick(now_ms()).records)

    # ---- duties

    def perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case StartJob(connector):
                    self.counts.starts(connector, effect.epoch, effect.tasks)
                    self._queue(connector, self._start(effect))
                case StopJob(connector):
                    self.counts.stops(connector)
                    self._queue(connector, self._stop(connector))
                case Say(record):
                    self._queue(record.connector, self._say(record))
                case StandBy():
                    self.jobs.stand_by()

    def _queue(self, connector: str, work: Coroutine[Any, Any, None]) -> None:
        before = self._lanes.get(connector)

        async def in_turn() -> None:
            try:
                if before is not None:
                    await asyncio.wait([before])
                await work
            finally:
                work.close()

        task = self._lanes[connector] = asyncio.create_task(in_turn(), name=f"connector {connector}")
        task.add_done_callback(lambda done: self._lane_ended(connector, done))

    def _lane_ended(self, connector: str, task: asyncio.Task[None]) -> None:
        if self._lanes.get(connector) is task:
            del self._lanes[connector]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("what was to be done for the connector %s failed", connector, exc_info=error)

    async def settled(self, connectors: Collection[str] | None = None) -> None:
        """Returns when all that was begun is done; of these, if they are named."""
        while lanes := [lane for name, lane in self._lanes.items() if connectors is None or name in connectors]:
            await asyncio.wait(lanes)

    async def _start(self, effect: StartJob) -> None:
        name = effect.connector
        kind = await asyncio.to_thread(self.kind_of, effect.config)  # which may import somebody's module
        try:
            secrets = self._secrets[name] = self.providers.secrets(effect.config)
            resolved = Resolved(self.providers.resolve(effect.config), secrets)
        except ConfigError as error:
            self._reported(Report(name, effect.epoch, Event.FAILED, str(error)))
            return
        status = self.state.statuses.connector(name)
        if status is not None and status.worker_id != self.worker_id:
            await self.jobs.forget(name)  # another worker has gone on since: what is kept here is old
        order = Order(name, effect.config, kind, effect.tasks, effect.generation, effect.epoch)
        try:
            await self.jobs.start(order, resolved)
        except Exception as error:  # noqa: BLE001  whatever is wrong with one connector belongs into its status
            self._reported(Report(name, effect.epoch, Event.FAILED, f"{type(error).__name__}: {error}"))

    async def _stop(self, connector: str) -> None:
        await self.jobs.stop(connector)
        wanted = self.state.configs.connectors.get(connector)
        if wanted is None or wanted.state is config_records.TargetState.STOPPED:
            await self.jobs.forget(connector)

    async def _say(self, record: statuses.StatusRecord) -> None:
        assert self.topics is not None
        key, value = statuses.encode(record)
        try:
            await self.topics.producer.send(self.topics.statuses.topic, value, key=key)
        except ClientError as error:
            logger.error("what became of %s could not be written down: %s", record.connector, error)

    def _reported(self, report: Report) -> None:
        now = now_ms()
        match report.event:
            case Event.RUNNING:
                self.counts.runs(report.connector, report.epoch)
                effects = self.duties.began(report.connector, report.epoch)
            case Event.FAILED:
                self.counts.fails(report.connector, report.epoch)
                trace = masked(report.trace, self._secrets.get(report.connector, ()))
                effects = self.duties.failed(report.connector, report.epoch, trace, now)
            case Event.ENDED:
                self.counts.runs(report.connector, report.epoch)
                effects = self.duties.ended(report.connector, report.epoch, now)
        self.perform([*effects, *self.duties.uses(report.connector, report.topics, now)])

    @property
    def worker_id(self) -> str:
        return self.duties.worker_id

    def kind_of(self, config: Mapping[str, str | None]) -> str:
        wanted = (config.get("connector.class") or "").strip()
        found = self._plugins.find(wanted, PluginType.SOURCE, PluginType.SINK)
        return "unknown" if found is None else found.kind.value


def now_ms() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


def followers(
    worker: Worker, cluster: Cluster, names: tuple[str, str, str], counts: tuple[int, int, int]
) -> tuple[Follower, Follower, Follower]:
    """Of configs, statuses and offsets, in that order."""
    return (
        Follower(cluster, names[0], counts[0], worker.replay_config, worker.configs_heard),
        Follower(cluster, names[1], counts[1], worker.replay_status, _nothing),
        Follower(cluster, names[2], counts[2], worker.replay_offset, _nothing),
    )


def _nothing() -> None:
    pass
