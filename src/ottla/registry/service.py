"""A schema registry that runs: start, stop, health, banner. What the platform process, and tests, have of it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.client.addresses import Address as BrokerAddress
from ottla.client.aio.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.security import PLAINTEXT, Security
from ottla.http.addresses import Address
from ottla.http.asgi import AsgiApplication
from ottla.http.asking import NoAnswer
from ottla.http.auth import OPEN_DOOR, Doorkeeper
from ottla.http.limits import Limits
from ottla.http.listening import Listening, opened
from ottla.registry.journal.topic import prepare
from ottla.registry.languages import LANGUAGES
from ottla.registry.machine.machine import Machine, Rules
from ottla.registry.machine.parsing import Languages
from ottla.registry.machine.refusals import Refusal
from ottla.registry.monitoring import RequestCounts
from ottla.registry.runner import Runner
from ottla.registry.settings import RegistrySettings

if TYPE_CHECKING:
    from ottla.registry.api.desk import Desk
    from ottla.registry.doors.subject_rights import SubjectRights
    from ottla.registry.tls import ServiceTls

logger = logging.getLogger(__name__)

_CLIENT_ID: Final = "ottla-registry"


class StartFailed(Exception):
    """The text says what is in the way, and what to do."""


class RegistryService:
    """`start` returns when questions are answered; writes wait, if need be, until it is known who leads."""

    name = "registry"

    def __init__(
        self,
        settings: RegistrySettings,
        bootstrap: Sequence[BrokerAddress],
        *,
        security: Security = PLAINTEXT,
        ports: Sequence[socket.socket] = (),
        languages: Languages = LANGUAGES,
    ) -> None:
        """`ports`, if somebody else has taken them: one for each of `registry.listeners`, in that order."""
        self._settings = settings
        self._brokers = bootstrap
        self._security = security
        self._doorkeeper: Doorkeeper = OPEN_DOOR
        self._rights: SubjectRights | None = None
        self._tls: ServiceTls | None = None
        self._ports = ports
        self._languages = languages
        self._cluster = Cluster(
            bootstrap,
            client_id=_CLIENT_ID,
            timeout_s=settings.seconds("kafkastore.timeout.ms"),
            security=security,
        )
        self._counts = RequestCounts()
        self._open: list[Listening] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._runner: Runner | None = None
        self._kafka_cluster = ""
        self._failed: str | None = None

    # Its life.

    async def start(self) -> None:
        """Raises OSError when an address cannot be had, WrongTopic, ClientError, StartFailed."""
        self._make_safe()
        self._bind()
        topic = self._settings["kafkastore.topic"]
        await self._prepare()
        self._kafka_cluster = (await self._cluster.metadata([])).cluster_id or ""
        runner = self._runner = self._made(topic)
        self._tasks.append(asyncio.create_task(runner.follower.run(), name="registry-reader"))
        await self._read_all(runner)
        for listening in self._open:
            await listening.start_now()
        self._tasks.append(asyncio.create_task(self._lead_if_nobody_does(runner), name="registry-lead"))
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def _make_safe(self) -> None:
        """What is needed for it is loaded by who asks for it."""
        settings = self._settings
        try:
            if any(address.scheme == "https" for address in settings.listeners):
                from ottla.registry.tls import ServiceTls  # noqa: PLC0415

                self._tls = ServiceTls(settings)
                self._tasks.append(asyncio.create_task(self._tls.follow(), name="registry-certificates"))
            if "authentication.method" in settings.given:
                from ottla.registry.doors.door import door_of, rights_of  # noqa: PLC0415

                self._doorkeeper = door_of(settings, self._brokers, self._security)
                self._rights = rights_of(settings, self._cluster)
        except ValueError as error:
            raise StartFailed(str(error)) from error

    def _bind(self) -> None:
        context = None if self._tls is None else self._tls.server()
        for listening in opened(self._settings.listeners, self._application, self._ports, context):
            self._open.append(listening)

    def _made(self, topic: str) -> Runner:
        settings = self._settings
        rules = Rules(
            default_level=settings["schema.compatibility.level"].upper(),
            mode_mutability=settings["mode.mutability"],
            steps=settings["registry.check.steps"],
            remembered=settings["schema.cache.size"],
        )
        return Runner(
            self._cluster,
            Machine(self._languages, rules),
            topic,
            url=self.url,
            group=settings["schema.registry.group.id"],
            timeout_s=settings.seconds("kafkastore.timeout.ms"),
            check_topic=self._prepare,
        )

    async def _prepare(self) -> None:
        await prepare(
            self._cluster, self._settings["kafkastore.topic"], self._settings["kafkastore.topic.replication.factor"]
        )

    async def _read_all(self, runner: Runner) -> None:
        patience_s = self._settings.seconds("kafkastore.init.timeout.ms")
        try:
            async with asyncio.timeout(patience_s):
                await runner.follower.caught_up()
        except TimeoutError:
            why = runner.follower.trouble or "it is long, or the cluster slow"
            raise StartFailed(
                f"the topic {runner.follower.place.topic} was not read to its end within {patience_s:g} s "
                f"(kafkastore.init.timeout.ms): {why}"
            ) from None

    async def _lead_if_nobody_does(self, runner: Runner) -> None:
        """So that the first write need not find out. Who restarts at its old address led last, and leads again."""
        if not self._settings["leader.eligibility"]:
            return
        leader = runner.follower.leader
        try:
            if leader is not None and leader.url != self.url:
                with suppress(NoAnswer):
                    await self._desk(runner).check_alive(leader.url)
                    return
            await runner.take_lead(leader)
        except (Refusal, ClientError) as error:
            logger.warning("nobody leads yet, the first write will try again: %s", error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed = f"{task.get_name()} failed: {error}"
            logger.error("%s", self._failed, exc_info=error)

    async def stop(self) -> None:
        """May be called whatever became of the start."""
        for listening in self._open:
            await listening.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._rights is not None:
            await self._rights.stop()
        await self._cluster.close()

    def abandon(self) -> None:
        """The end by force, as by kill -9: sockets close, nobody is told."""
        for listening in self._open:
            listening.abandon()
        for task in self._tasks:
            task.cancel()

    # What others see of it.

    def _desk(self, runner: Runner) -> Desk:
        from ottla.registry.api.desk import Desk  # noqa: PLC0415  with the first listener

        tls = self._tls
        to_others = (lambda: tls.client) if tls is not None else None
        return Desk(runner, self._settings, self.url, to_others, self._rights)

    def _application(self, address: Address) -> AsgiApplication:
        from ottla.registry.api.application import application  # noqa: PLC0415  with the first listener
        from ottla.registry.api.server import Identity  # noqa: PLC0415

        assert self._runner is not None, "listening, but not started"
        desk = self._desk(self._runner)
        identity = Identity(self._kafka_cluster, self._settings["schema.registry.group.id"])
        limits = Limits(body_bytes=self._settings["registry.body.max.bytes"])
        return application(desk, identity, address, limits, self._doorkeeper, self._counts)

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(str(listening.address) for listening in self._open)

    @property
    def url(self) -> str:
        """Where other registries reach this one."""
        wanted = self._settings["inter.instance.protocol"]
        addresses = [listening.address for listening in self._open]
        first = next((each for each in addresses if each.scheme == wanted), addresses[0])
        host = self._settings["host.name"] or first.host or socket.gethostname()
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        return str(first._replace(host=host))

    @property
    def leads(self) -> bool:
        return self._runner is not None and self._runner.leads

    @property
    def leader(self) -> str | None:
        return self._runner.leader if self._runner is not None else None

    def troubles(self) -> Mapping[str, str]:
        """A word for programs, and what it means here, for people; empty: it does what it is for."""
        found: dict[str, str] = {}
        if self._failed is not None:
            found["registry_failed"] = self._failed
        if self._runner is not None and self._runner.follower.trouble is not None:
            found["registry_topic"] = f"schemas may be old: {self._runner.follower.trouble}"
        return found

    def banner(self) -> Sequence[str]:
        return [f"registry {address}" for address in self.addresses]
