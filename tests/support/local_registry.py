"""The whole API over a machine whose topic is in memory: what does not depend on a cluster is asked here, fast."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.http.addresses import Address
from ottla.http.limits import Limits
from ottla.registry.api.application import application
from ottla.registry.api.desk import Desk
from ottla.registry.api.server import Identity
from ottla.registry.machine.commands import Command
from ottla.registry.machine.machine import Machine
from ottla.registry.machine.refusals import Refusal
from ottla.registry.runner import Runner
from ottla.registry.settings import RegistrySettings
from tests.support.asgi import exchanged
from tests.support.toy_language import TOY_LANGUAGES

BODY_BYTES = 1 << 20


class _InMemory(Runner):
    """It always leads, and what it writes is read at once."""

    async def submit(self, command: Command) -> Any:
        decision = self.machine.decide(command)
        if isinstance(decision.reply, Refusal):
            raise decision.reply
        for record in decision.records:
            assert self.machine.replay(record, 1_700_000_000_000) is None
        return decision.reply


class LocalRegistry:
    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = machine or Machine(TOY_LANGUAGES)
        runner = _InMemory(None, self.machine, "_schemas", url="", group="", timeout_s=1)  # type: ignore[arg-type]
        desk = self.desk = Desk(runner, RegistrySettings.of(), "")
        limits = Limits(body_bytes=BODY_BYTES)
        self.application = application(desk, Identity("k", "sr"), Address("http", "127.0.0.1", 0), limits)

    async def ask(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status, and the body as JSON. A body that is no bytes is sent as JSON."""
        status, _, content = await self.exchange(method, target, body, **headers)
        return status, json.loads(content) if content else None

    async def exchange(
        self, method: str, target: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        return await exchanged(self.application, method, target, raw, said)


def run(work: Callable[[LocalRegistry], Awaitable[None]], machine: Machine | None = None) -> None:
    asyncio.run(_worked(work, machine))


async def _worked(work: Callable[[LocalRegistry], Awaitable[None]], machine: Machine | None) -> None:
    await work(LocalRegistry(machine))
