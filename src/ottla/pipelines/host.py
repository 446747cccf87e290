"""One SparkContext for many jobs. Each job has a thread, a session (settings, views and data sources of its own) and a
FAIR pool, so that one with much to do does not hold up the others.

A job that fails does not touch the others. It is begun again after a pause, in a session of its own again; since its
output is exactly once, that is all it takes. What trying again would not help stays FAILED, with the reason.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.failures import quieten, told, was_fenced
from ottla.pipelines.job import CannotStart, Entry, Job, Pauses, State, Work
from ottla.pipelines.session import new_session
from ottla.pipelines.settings import LOG_LEVEL, POOL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

POLL_S: Final = 0.02
LAST_BATCH_S: Final = 10.0
"""A query whose batch takes longer than this after `stop` is cut off: the batch runs again at the next start."""


class NoSuchJob(Exception):
    """There is no job of that name here."""


class Host:
    """The jobs of this process. Methods may be called from any thread."""

    def __init__(self, name: str, master: str = "local[*]", settings: Mapping[str, str] | None = None) -> None:
        self._name = name
        self._master = master
        self._settings = dict(settings or {})
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        """A JVM takes seconds to start; nobody who asks for something else waits for it."""
        self._jobs: dict[str, _Running] = {}
        self._spark: SparkSession | None = None

    def start(self, job: Job, entry: Entry | None = None, *, again: bool = True) -> None:
        """Returns at once; `status` tells how it goes. Raises CannotStart. `entry` is what `job.entry` names, if the
        caller has it already. Without `again` a job that fails stays so."""
        found = entry or job.load()
        with self._lock:
            known = self._jobs.get(job.name)
            if known is not None and known.is_alive:
                raise CannotStart(f"{job.name} is there already ({known.state.value}): stop it first")
            running = self._jobs[job.name] = _Running(job, found, self._session, again=again)
        running.start()

    def stop(self, name: str, patience_s: float | None = None) -> None:
        """Lets the micro-batch under way end, and the job with it. Raises NoSuchJob."""
        job = self._job(name)
        job.stop()
        job.join(patience_s)

    def wait(self, name: str, patience_s: float | None = None) -> bool:
        """For the end of a job, however it ends; whether it has. Raises NoSuchJob."""
        return self._job(name).join(patience_s)

    def failure(self, name: str) -> BaseException | None:
        return self._job(name).failure

    def status(self) -> list[Mapping[str, Any]]:
        return [job.status() for job in list(self._jobs.values())]

    def progress(self, name: str) -> Mapping[str, Any]:
        """Raises NoSuchJob."""
        return self._job(name).progress()

    def close(self) -> None:
        """Stops all jobs; their batches end side by side. The SparkContext stays: it goes with the process."""
        jobs = list(self._jobs.values())
        for job in jobs:
            job.stop()
        for job in jobs:
            job.join(None)

    def _job(self, name: str) -> _Running:
        job = self._jobs.get(name)
        if job is None:
            raise NoSuchJob(f"there is no job {name!r}; there are {', '.join(sorted(self._jobs)) or 'none'}")
        return job

    def _session(self) -> SparkSession:
        """The first job has the session that comes with a new SparkContext: another one beside it is made of as many
        parts again. What is set in one is not seen in others."""
        with self._starting:
            if self._spark is not None:
                return self._spark.newSession()
            is_new = SparkContext._active_spark_context is None
            self._spark = new_session(self._name, self._master, **self._settings)
            if LOG_LEVEL not in self._settings:
                quieten(self._spark)
            return self._spark if is_new else self._spark.newSession()


class _Running:
    """One job, in a thread of its own."""

    def __init__(self, job: Job, entry: Entry, session: Callable[[], SparkSession], *, again: bool) -> None:
        self._job = job
        self._entry = entry
        self._session = session
        self._again = again
        self._stop = threading.Event()
        self._pauses = Pauses()
        self._work: Work | None = None
        self._thread = threading.Thread(target=self._run, name=f"job-{job.name}", daemon=True)
        self.state = State.STARTING
        self.failure: BaseException | None = None
        self._failures = 0

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self.state not in (State.FAILED, State.STOPPED)

    def stop(self) -> None:
        self._stop.set()
        work = self._work
        if work is not None:
            work.stop()

    def join(self, patience_s: float | None) -> bool:
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def status(self) -> Mapping[str, Any]:
        reason = None if self.failure is None or self.state is State.RUNNING else told(self.failure)
        return {**self._job.as_json(), "state": self.state.value, "reason": reason, "failures": self._failures}

    def progress(self) -> Mapping[str, Any]:
        work = self._work
        return {} if work is None else work.progress()

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._attempt()
            except BaseException as error:  # noqa: BLE001  whatever a job raises, sys.exit too, is its own: others go on
                self.failure = error
                if not self._waits(error, time.monotonic() - began):
                    return
            else:
                self.failure = None
                break
        self.state = State.STOPPED

    def _attempt(self) -> None:
        self.state = State.STARTING
        spark = self._session()
        # Queries take the pool of the thread that starts them.
        spark.sparkContext.setLocalProperty(POOL, self._job.name)
        begun = self._entry(spark, self._job.arguments)
        work: Work = _OneQuery(begun) if isinstance(begun, StreamingQuery) else begun
        self._work = work
        if self._stop.is_set():
            work.stop()
        self.state = State.RUNNING
        work.run()

    def _waits(self, error: BaseException, ran_s: float) -> bool:
        """Whether there is another attempt."""
        self._failures += 1
        if not self._again or isinstance(error, CannotStart) or was_fenced(error):
            self.state = State.FAILED
            logger.error("%s failed: %s", self._job.name, told(error))
            return False
        pause = self._pauses.after(ran_s)
        self.state = State.WAITING
        logger.warning("%s failed and begins again in %.0f s: %s", self._job.name, pause, told(error))
        self._stop.wait(pause)
        return True


class _OneQuery:
    """A query that an entry has started."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._stop = threading.Event()

    def run(self) -> None:
        while self._query.isActive and not self._stop.wait(POLL_S):
            pass
        deadline = time.monotonic() + LAST_BATCH_S
        while self._query.isActive and self._query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._query.stop()
        error = self._query.exception()
        if error is not None and not self._stop.is_set():
            raise error

    def stop(self) -> None:
        self._stop.set()

    def progress(self) -> Mapping[str, Any]:
        last: Any = self._query.lastProgress
        found: dict[str, Any] = {} if last is None else json.loads(last.json)
        return found
