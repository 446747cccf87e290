"""/ and /v1/metadata: who answers here."""

from typing import Any, NamedTuple

from ottla import __version__
from ottla.http.call import Call
from ottla.http.routes import Route


class Identity(NamedTuple):
    kafka_cluster: str
    registry_cluster: str


class Server:
    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("GET", "/", self._root, "Whether somebody is there", reply=dict[str, str]),
            Route("POST", "/", self._root, "Whether somebody is there", body=bytes, reply=dict[str, str]),
            Route("GET", "/v1/metadata/id", self._id, "Of which clusters", reply=dict[str, Any]),
            Route("GET", "/v1/metadata/version", self._version, "Which version", reply=dict[str, str]),
            Route("GET", "/v1/metadata/deployment", self._deployment, "How it is run", reply=dict[str, Any]),
        )

    async def _root(self, call: Call) -> Any:
        return {}

    async def _id(self, call: Call) -> Any:
        clusters = {
            "kafka-cluster": self._identity.kafka_cluster,
            "schema-registry-cluster": self._identity.registry_cluster,
        }
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    async def _version(self, call: Call) -> Any:
        return {"version": __version__, "commitId": ""}

    async def _deployment(self, call: Call) -> Any:
        return {"attributes": []}
