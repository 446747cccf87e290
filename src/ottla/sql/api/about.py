"""What the server is and how it does: /info, /healthcheck, /clusterStatus, /v1/metadata, /chc."""

import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from ottla import __version__
from ottla.http.answers import Answer
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route
from ottla.model.permissions import ALTER_CLUSTER
from ottla.sql.server.engine import Engine

OTHERS: Final = ALTER_CLUSTER
"""What a server needs that tells another one something."""
_SILENCE_MS: Final = 10_000
"""After which a server that told that it lives is taken for dead."""
_MOST_HOSTS: Final = 100


class Host(msgspec.Struct, rename="camel"):
    host: str
    port: int

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"


class HeartbeatMessage(msgspec.Struct, rename="camel"):
    host_info: Host
    timestamp: int


class LagMessage(msgspec.Struct):
    host: Host = msgspec.field(name="ksqlHost")
    update_time_ms: int = msgspec.field(name="updateTimeMs", default=0)
    host_store_lags: dict[str, Any] | None = msgspec.field(name="stateStoreLags", default=None)


class About:
    def __init__(self, engine: Engine, cluster_id: str, address: Callable[[], str]) -> None:
        self._engine = engine
        self._cluster_id = cluster_id
        self._address = address
        self._heard: dict[str, int] = {}
        self._lags: dict[str, Any] = {}

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("GET", "/", self.root, "Leads to /info."),
            Route("GET", "/info", self.info, "Version, cluster and service id."),
            Route("GET", "/healthcheck", self.health, "Whether the server does its work."),
            Route("GET", "/clusterStatus", self.cluster, "Servers of this service id that are known."),
            Route(
                "POST",
                "/heartbeat",
                self.heartbeat,
                "Another server tells that it lives.",
                HeartbeatMessage,
                needs=OTHERS,
            ),
            Route("POST", "/lag", self.lag, "Another server tells how far its queries are.", LagMessage, needs=OTHERS),
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
        now_ms = time.time_ns() // 1_000_000
        own = {"hostAlive": True, "lastStatusUpdateMs": now_ms}
        others = {
            host: {"hostAlive": now_ms - heard < _SILENCE_MS, "lastStatusUpdateMs": heard}
            for host, heard in self._heard.items()
        }
        told = {
            host: {
                **status,
                "activeStandbyPerQuery": {},
                "hostStoreLags": self._lags.get(host, {"stateStoreLags": {}, "updateTimeMs": 0}),
            }
            for host, status in {**others, urlsplit(self._address()).netloc: own}.items()
        }
        return {"clusterStatus": told}

    async def heartbeat(self, call: Call) -> Any:
        """ksqlDB's servers tell each other; so may whoever watches several of ours."""
        message: HeartbeatMessage = call.body
        self._remember(self._heard, message.host_info.name, message.timestamp)
        return {"isOk": True}

    async def lag(self, call: Call) -> Any:
        message: LagMessage = call.body
        lags = {"stateStoreLags": message.host_store_lags or {}, "updateTimeMs": message.update_time_ms}
        self._remember(self._lags, message.host.name, lags)
        return {"isOk": True}

    @staticmethod
    def _remember(into: dict[str, Any], host: str, told: Any) -> None:
        if host not in into and len(into) >= _MOST_HOSTS:
            raise Problem(400, f"{_MOST_HOSTS} servers are known already", 40000)
        into[host] = told

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
