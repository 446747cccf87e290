"""The worker itself: who it is, and whether it is well (KIP-1017)."""

from typing import Any

from ottla import __version__
from ottla.connect.api.desk import Desk
from ottla.connect.plugins import KAFKA_VERSION
from ottla.http.answers import Answer
from ottla.http.call import Call
from ottla.http.routes import Route


class Server:
    __slots__ = ("_cluster_id", "_desk")

    def __init__(self, desk: Desk, cluster_id: str) -> None:
        self._desk = desk
        self._cluster_id = cluster_id

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("GET", "/", self.root, "The version, and the cluster this worker belongs to."),
            Route("GET", "/health", self.health, "Whether the worker is ready and well."),
        )

    async def root(self, call: Call) -> Any:
        return {"version": KAFKA_VERSION, "commit": f"ottla {__version__}", "kafka_cluster_id": self._cluster_id}

    async def health(self, call: Call) -> Any:
        worker = self._desk.worker
        troubles = worker.troubles()
        if not worker.ready or worker.lead.url is None:
            return Answer({"status": "starting", "message": "Worker is still starting up."}, 503)
        if troubles:
            told = "Worker was unable to handle this request and may be unable to handle other requests."
            return Answer({"status": "unhealthy", "message": f"{told} {'; '.join(troubles)}"}, 500)
        told = "Worker has completed startup and is ready to handle requests."
        return {"status": "healthy", "message": told}
