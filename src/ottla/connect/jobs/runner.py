"""What a worker calls: connectors as jobs of its Spark host. It looks what becomes of them, and reports what changes.

A job is not written down by the host, since its arguments hold secrets, and begins again when the worker says so: a
host that dies is reported as the failure of all that ran in it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Protocol

from ottla.connect.jobs.spec import JobSpec
from ottla.connect.jobs.task_numbers import TaskNumbers
from ottla.connect.orders import Event, Listener, Order, Report, Resolved, WorkerFacts
from ottla.pipelines.door import HostClient, HostGone, Refused
from ottla.pipelines.job import State

logger = logging.getLogger(__name__)

ENTRY: Final = "ottla.connect.jobs.start:start"
WARM_UP: Final = "warm-up"
"""The job of a worker that stands by."""
LOOK_S: Final = 0.25
"""Between two looks at the jobs, while one of them is to begin."""
IDLE_LOOK_S: Final = 1.0
"""When all of them run."""
_PLAIN: Final = re.compile(r"[a-zA-Z0-9._-]{1,150}")


class HostDoor(Protocol):
    """Where the host is: started with the first call, started anew if it dies."""

    def client(self, patience_s: float = ...) -> HostClient: ...

    def close(self) -> None: ...


class HostRunner:
    """Of one worker. Its methods are called on the worker's loop; what waits for the host does so in threads."""

    def __init__(self, facts: WorkerFacts, host: HostDoor, directory: Path) -> None:
        self._facts = facts
        self._host = host
        self._directory = directory
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="connect-jobs")
        self._lock = threading.Lock()
        self._orders: dict[str, Order] = {}
        """What should run."""
        self._told: dict[str, tuple[int, Event]] = {}
        """The last report of each, with its epoch."""
        self._listener: Listener = lambda _: None
        self._closing = threading.Event()
        self._watcher: threading.Thread | None = None
        self._seen: dict[str, Mapping[str, Any]] = {}
        self._levels: dict[str, int] = {}
        self._levels_told: tuple[int, list[tuple[str, int]]] = (-1, [])
        """To which host, and in which order: the same ones in another are others."""

    def listen(self, listener: Listener) -> None:
        self._listener = listener

    async def start(self, order: Order, resolved: Resolved) -> None:
        with self._lock:
            self._orders[order.connector] = order
        self._watch()
        asyncio.get_running_loop().run_in_executor(self._threads, self._begin, order, resolved)

    async def stop(self, connector: str) -> None:
        with self._lock:
            order = self._orders.pop(connector, None)
        if order is not None:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._end, connector)

    async def forget(self, connector: str) -> None:
        """Each start asks Kafka where to begin: what is left is a folder."""
        folder = self._folder(connector)
        await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: shutil.rmtree(folder, ignore_errors=True)
        )

    def stand_by(self) -> None:
        asyncio.get_running_loop().run_in_executor(self._threads, self._warm_up)

    def set_level(self, namespace: str, level: int) -> None:
        """The host is told at the next look, if it runs."""
        with self._lock:
            self._levels.pop(namespace, None)  # the last word is the last in order, too
            self._levels[namespace] = level

    async def progress(self) -> Mapping[str, Mapping[str, Any]]:
        return {name: _counts(found, self._kind(name)) for name, found in list(self._seen.items())}

    async def close(self) -> None:
        self._closing.set()
        with self._lock:
            self._orders.clear()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self._host.close()
        if self._watcher is not None:
            self._watcher.join()
        self._threads.shutdown(cancel_futures=True)

    # In threads.

    def _begin(self, order: Order, resolved: Resolved) -> None:
        facts = self._facts
        spec = JobSpec(
            name=order.connector,
            config=dict(resolved.config),
            bootstrap=facts.bootstrap,
            group_id=facts.group_id,
            offsets_topic=resolved.config.get("offsets.storage.topic") or facts.offsets_topic,
            directory=str(self._folder(order.connector)),
            defaults=dict(facts.defaults),
            client=dict(facts.client),
            tasks=order.tasks,
            epoch=order.epoch,
            topic_creation=facts.topic_creation,
            last_batch_s=facts.last_batch_s,
            modules=list(facts.modules),
            secrets=list(resolved.secrets),
        )
        try:
            with self._host.client() as client:
                if self._orders.get(order.connector) is not order:
                    return  # it was told to stop while the host came up
                client.start(job_name(order.connector), ENTRY, asdict(spec), keep=False)
                if self._orders.get(order.connector) is not order:
                    client.stop(job_name(order.connector))
        except (HostGone, Refused) as error:
            self._tell(order, Event.FAILED, f"the Spark host could not begin it: {error}")

    def _warm_up(self) -> None:
        arguments = {"directory": str(self._directory / WARM_UP)}
        try:
            with self._host.client() as client:
                client.start(WARM_UP, "ottla.connect.jobs.warm_up:start", arguments, keep=False)
        except (HostGone, Refused) as error:
            logger.info("the Spark host is not ready for connectors of others: %s", error)

    def _end(self, connector: str) -> None:
        try:
            with self._host.client() as client:
                client.stop(job_name(connector))
        except (HostGone, Refused) as error:
            logger.info("%s is stopped: %s", connector, error)
        self._seen.pop(connector, None)

    def _folder(self, connector: str) -> Path:
        return self._directory / "connectors" / job_name(connector)

    def _kind(self, connector: str) -> str:
        order = self._orders.get(connector)
        return "source" if order is None else order.kind

    # Watching.

    def _watch(self) -> None:
        with self._lock:
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._look_on, name="connect-jobs-watch", daemon=True)
                self._watcher.start()

    def _look_on(self) -> None:
        pid = None
        while not self._closing.wait(IDLE_LOOK_S if self._all_run() else LOOK_S):
            with self._lock:
                orders = list(self._orders.values())
            if not orders:
                continue
            try:
                with self._host.client() as client:
                    now, jobs = client.look()
                    self._tell_levels(client, now)
                lost = pid is not None and pid != now
                pid = now
                self._compare(orders, jobs, lost=lost)
            except (HostGone, Refused) as error:
                logger.info("the Spark host: %s", error)

    def _tell_levels(self, client: HostClient, pid: int) -> None:
        with self._lock:
            wanted = (pid, list(self._levels.items()))
        if wanted[1] and wanted != self._levels_told:
            client.levels(dict(wanted[1]))
            self._levels_told = wanted

    def _all_run(self) -> bool:
        with self._lock:
            return all(self._told.get(name) == (order.epoch, Event.RUNNING) for name, order in self._orders.items())

    def _compare(self, orders: list[Order], jobs: Mapping[str, Mapping[str, Any]], *, lost: bool) -> None:
        for order in orders:
            job = jobs.get(job_name(order.connector))
            if job is None or job["arguments"]["epoch"] != order.epoch:
                if lost and self._told.get(order.connector, (0, None))[0] == order.epoch:
                    self._tell(order, Event.FAILED, "the Spark host died, and this connector with it")
                continue
            match State(job["state"]):
                case State.RUNNING:
                    found = job["progress"]
                    self._seen[order.connector] = found
                    if found.get("begun"):
                        self._tell(order, Event.RUNNING, topics=found.get("topics", ()))
                case State.FAILED:
                    self._tell(order, Event.FAILED, str(job["reason"]))
                case State.STOPPED:
                    self._tell(order, Event.ENDED)
                case _:
                    pass

    def _tell(self, order: Order, event: Event, trace: str = "", topics: Any = ()) -> None:
        said = (order.epoch, event)
        known = self._told.get(order.connector) == said
        if known and not topics:
            return
        self._told[order.connector] = said
        if order.connector in self._orders:
            self._listener(Report(order.connector, order.epoch, event, trace, tuple(topics)))


def job_name(connector: str) -> str:
    """Names of connectors may have anything in them."""
    if _PLAIN.fullmatch(connector) and connector != WARM_UP:
        return connector
    plain = re.sub(r"[^a-zA-Z0-9._-]", "_", connector)[:100]
    return f"{plain}-{hashlib.sha256(connector.encode()).hexdigest()[:16]}"


def _counts(found: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """By task, under Connect's names; and what the connector has of its own."""
    nothing_yet = {"0": TaskNumbers(is_source=kind == "source").told(0)}
    return {"tasks": found.get("tasks") or nothing_yet, "measures": found.get("measures", ())}
