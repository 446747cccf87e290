"""The audit log of a node with an authorizer: what it has counted is told in time, and when the node stops."""

import asyncio

from ottla.broker.security.audit import Audit
from ottla.node.services import Ending, Service


class AuditLog(Service):
    name = "audit"

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    async def start(self) -> None:
        self._audit.wake_by(asyncio.get_running_loop().call_later)

    async def stop(self, ending: Ending) -> None:
        self._audit.flush()
