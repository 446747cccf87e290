"""What the server is and how it does: /info, /healthcheck, /clusterStatus, /v1/metadata, /chc."""

from collections.abc import Callable
from typing import Any

from ottla import __version__
from ottla.http.answers import Answer
from ottla.http.call import Call
from ottla.http.routes import Route
from ottla.sql.server.engine import Engine


class About:
    def __init__(self, engine: Engine, cluster_id: str, address: Callable[[], str]) -> None:
        self._engine = engine
        self._cluster_id = cluster_id
        self._address = address

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("GET", "/", self.root, "Leads to /info."),
            Route("GET", "/info", self.info, "Version, cluster and service id."),
            Route("GET", "/healthcheck", self.health, "Whether the server does its work."),
            Route("GET", "/clusterStatus", self.cluster, "Servers of this service id that are known."),
            Route("GET", "/v1/metadata", self.metadata, "The cluster that this server belongs to."),
            Route("GET", "/v1/metadata/id", self.metadata, "The cluster that this server belongs to."),
            Route("GET", "/chc/live", self.alive, "Whether it answers."),
            Route("GET", "/chc/ready", self.ready, "Whether it has read its statements."),
        )

    async def root(self, _: Call) -> Any:
        return Answer(None, 307, headers={"location": "/info"})

    async def info(self, _: Call) -> Any:
        return {
            "KsqlServerInfo": {
                "version": __version__,
                "kafkaClusterId": self._cluster_id,
                "ksqlServiceId": self._engine.service_id,
                "serverStatus": "RUNNING",
            }
        }

    async def health(self, _: Call) -> Any:
        reads = self._engine.log.trouble is None
        return Answer(
            {
                "isHealthy": reads,
                "details": {
                    "metastore": {"isHealthy": True},
                    "kafka": {"isHealthy": reads},
                    "commandRunner": {"isHealthy": reads},
                },
                "serverState": "READY",
            }
        )

    async def cluster(self, _: Call) -> Any:
        return {"clusterStatus": {self._address(): {"hostAlive": True, "lastStatusUpdateMs": 0}}}

    async def metadata(self, _: Call) -> Any:
        return {
            "id": "",
            "scope": {
                "path": [],
                "clusters": {"kafka-cluster": self._cluster_id, "ksql-cluster": self._engine.service_id},
            },
        }

    async def alive(self, _: Call) -> Any:
        return {}

    async def ready(self, _: Call) -> Any:
        return {}
