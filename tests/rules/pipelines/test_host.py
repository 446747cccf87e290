"""What becomes of jobs in a host. Of Spark only its words are needed here: no JVM is started."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from ottla.pipelines.host import _Running
from ottla.pipelines.job import Job, State

PATIENCE_S = 60.0


def test_a_job_that_wants_to_end_its_process_has_failed_and_ends_nothing_else() -> None:
    def entry(spark: Any, arguments: Mapping[str, Any]) -> Any:
        raise SystemExit("enough")

    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(setLocalProperty=lambda *_: None))
    running = _Running(Job("copy", "shop.jobs:copy"), entry, lambda: spark, again=False)
    running.start()
    assert running.join(PATIENCE_S)
    assert (running.state, running.is_alive) == (State.FAILED, False)
    assert isinstance(running.failure, SystemExit)
