"""Statements about connectors, passed on to a Connect worker over its REST API."""

import json
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from ottla.http.asking import NoAnswer, ask
from ottla.sql import tree as t
from ottla.sql.errors import BAD_STATEMENT, DENIED, SERVER_ERROR, SqlError
from ottla.sql.server import entities

_CONNECT_S: Final = 5.0
_ANSWER_S: Final = 90.0
"""A worker that is not the leader asks the leader, which validates first."""
_CLASS: Final = "connector.class"


class Connectors:
    def __init__(self, url: str, tls: Callable[[], ssl.SSLContext | None] = lambda: None) -> None:
        """`url`: of a worker; empty if there is none. `tls`: whose certificates are believed; None: the system's."""
        self._url = url.rstrip("/")
        self._tls = tls

    async def run(self, statement: t.Statement, text: str, shown: Mapping[str, str]) -> entities.Entity:
        """The worker decides what who asks may: `shown` tells it who that is. Raises SqlError."""
        return await _Statement(self._url, shown, self._tls()).run(statement, text)


class _Statement:
    def __init__(self, url: str, shown: Mapping[str, str], tls: ssl.SSLContext | None) -> None:
        self._url = url
        self._shown = shown
        self._tls = tls

    async def run(self, statement: t.Statement, text: str) -> entities.Entity:
        """Raises SqlError."""
        match statement:
            case t.Show(what="CONNECTORS", scope=scope):
                return await self._list(text, scope)
            case t.Show():
                return await self._plugins(text)
            case t.CreateConnector():
                return await self._create(statement, text)
            case t.Drop(name=name, if_exists=if_exists):
                return await self._drop(name, text, if_exists)
            case t.Describe(name=name):
                return await self._describe(name or "", text)
        raise AssertionError(f"{statement} is none of connectors")

    # ---- statements

    async def _list(self, text: str, scope: str | None) -> entities.Entity:
        found: dict[str, Any] = await self._ask("GET", "/connectors?expand=info&expand=status")
        rows = [
            {
                "name": name,
                "type": each["info"].get("type", "unknown"),
                "className": each["info"]["config"].get(_CLASS, ""),
                "state": _state(each["status"]),
            }
            for name, each in sorted(found.items())
        ]
        kept = [row for row in rows if scope is None or row["type"] == scope.lower()]
        return entities.entity("connector_list", text, connectors=kept)

    async def _plugins(self, text: str) -> entities.Entity:
        found: list[dict[str, Any]] = await self._ask("GET", "/connector-plugins")
        rows = [{"className": each["class"], "type": each["type"], "version": each.get("version")} for each in found]
        return entities.entity("connector_plugins_list", text, connectorPlugins=rows)

    async def _create(self, statement: t.CreateConnector, text: str) -> entities.Entity:
        config = {name: _text(value) for name, value in statement.properties}
        if _CLASS not in config:
            raise SqlError(BAD_STATEMENT, f"WITH has to say '{_CLASS}': SHOW CONNECTOR PLUGINS lists those there are")
        status, answer = await self._answer("POST", "/connectors", {"name": statement.name, "config": config})
        if status == 409 and statement.if_not_exists:
            return entities.entity(
                "warning_entity", text, message=f"there is a connector {statement.name} already: nothing was done"
            )
        info = self._good(status, answer)
        if str(info.get("type", statement.kind)).upper() != statement.kind:
            await self._answer("DELETE", f"/connectors/{quote(statement.name, safe='')}")
            raise SqlError(
                BAD_STATEMENT, f"{config[_CLASS]} is a {info['type']}: CREATE {info['type'].upper()} CONNECTOR"
            )
        return entities.entity("connector_info", text, info=info)

    async def _drop(self, name: str, text: str, if_exists: bool) -> entities.Entity:
        status, answer = await self._answer("DELETE", f"/connectors/{quote(name, safe='')}")
        if status == 404 and if_exists:
            return entities.entity("warning_entity", text, message=f"there is no connector {name}: nothing was done")
        self._good(status, answer)
        return entities.entity("drop_connector", text, connectorName=name)

    async def _describe(self, name: str, text: str) -> entities.Entity:
        path = f"/connectors/{quote(name, safe='')}"
        info = await self._ask("GET", path)
        status = await self._ask("GET", f"{path}/status")
        topics = await self._ask("GET", f"{path}/topics")
        return entities.entity(
            "connector_description",
            text,
            connectorClass=info["config"].get(_CLASS, ""),
            status=status,
            sources=[],
            topics=topics.get(name, {}).get("topics", []),
        )

    # ---- asking

    async def _ask(self, method: str, path: str) -> Any:
        return self._good(*await self._answer(method, path))

    async def _answer(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        if not self._url:
            raise SqlError(
                BAD_STATEMENT, "connectors need a Connect worker: say where one is by ksql.connect.url in the settings"
            )
        headers = {"content-type": "application/json", "accept": "application/json", **self._shown}
        data = b"" if body is None else json.dumps(body).encode()
        try:
            reply = await ask(
                self._url, method, path, headers, data, connect_s=_CONNECT_S, answer_s=_ANSWER_S, tls=self._tls
            )
            return reply.status, json.loads(reply.body) if reply.body else None
        except (NoAnswer, ValueError) as error:
            raise SqlError(SERVER_ERROR, f"the Connect worker at {self._url}: {error}") from None

    @staticmethod
    def _good(status: int, answer: Any) -> Any:
        if status < 300:
            return answer
        told = answer.get("message", answer) if isinstance(answer, dict) else answer
        code = DENIED if status in (401, 403) else BAD_STATEMENT if status < 500 else SERVER_ERROR
        raise SqlError(code, f"Connect refuses ({status}): {told}")


def _text(value: t.Constant) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _state(status: Any) -> str:
    """As ksqlDB words it: how many tasks run."""
    tasks = status.get("tasks", [])
    running = sum(each.get("state") == "RUNNING" for each in tasks)
    state = status.get("connector", {}).get("state", "UNASSIGNED")
    if state != "RUNNING":
        return str(state)
    return f"{'RUNNING' if running == len(tasks) else 'WARNING'} ({running}/{len(tasks)} tasks RUNNING)"
