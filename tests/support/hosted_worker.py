"""A Connect worker with a Spark host of its own."""

from pathlib import Path
from typing import Any

from ottla.connect.jobs.runner import HostRunner
from ottla.connect.orders import WorkerFacts
from ottla.node.spark_host import SparkHost
from tests.support.connect_workers import ConnectWorker

QUICK = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class HostedWorker(ConnectWorker):
    """With a real host in place of the rehearsed one."""

    def __init__(self, bootstrap: str, directory: Path, settings: dict[str, object]) -> None:
        super().__init__(bootstrap, settings)
        self._directory = directory

    def _made(self, facts: WorkerFacts) -> Any:
        self.host = SparkHost(self._directory, "local[2]", QUICK)
        return HostRunner(facts, self.host, self._directory)
