"""What callers of a service may, by the cluster's ACLs, as a broker decides it: one set of rights for every service,
one sentence for whoever is refused, and one form of the audit log.

Who the caller is, is found out by whoever made the door; the decision is `ottla.security.acls`, of the entries as they
are now.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from ottla.http.auth import Caller
from ottla.http.problems import Problem
from ottla.model.ids import Millis
from ottla.model.permissions import CLUSTER_NAME, Permission, Resource
from ottla.security.acls import Rights, Rules
from ottla.security.audit import TEXT, Asked, Audit
from ottla.security.hosts import as_java
from ottla.security.words import granting


class _Clock:
    def wall(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000)

    def monotonic(self) -> Millis:
        return Millis(time.monotonic_ns() // 1_000_000)


_CLOCK: Final = _Clock()


def _later(seconds: float, do: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, do)


class AclRights:
    def __init__(self, service: str, rules: Callable[[], Rules | None], form: str = TEXT) -> None:
        """`rules` gives None as long as they are not known: nobody gets in before."""
        self._rules = rules
        self._audit = Audit(_CLOCK, logging.getLogger(f"ottla.{service}.audit"), form)
        self._audit.wake_by(_later)

    def of(self, caller: Caller) -> Rights:
        """Raises Problem."""
        rules = self._rules()
        if rules is None:
            raise Problem(503, "The ACLs of the cluster cannot be read, so nobody is let in; the log says why.")
        return rules.rights(caller.principal, as_java(caller.host))

    def allows(self, caller: Caller, needed: Permission, name: str) -> bool:
        """In passing: a refusal only leaves something out, and is not written down. Raises Problem."""
        return self.of(caller).allows(*needed, name)

    def check(self, caller: Caller, needed: Permission, name: str, request: str, code: int | None = None) -> None:
        """Raises Problem, which says what is missing. It is the same whether there is something of that name or not."""
        if not self.allows(caller, needed, name):
            raise Problem(403, self.refused(caller, needed, name, request), code)

    def refused(self, caller: Caller, needed: Permission, name: str, request: str) -> str:
        """Writes it down; what is missing, for the caller."""
        about = Asked(caller.principal, as_java(caller.host), needed.operation, needed.resource, name, request)
        self._audit.refused(about, lambda: self.of(caller).why(*needed, name))
        return lacks(caller.principal, needed, name)


def lacks(principal: str, needed: Permission, name: str) -> str:
    is_cluster = needed.resource is Resource.CLUSTER
    where = "the cluster" if is_cluster else f"{needed.resource.name.lower()} {name}"
    command = granting(principal, needed, CLUSTER_NAME if is_cluster else name)
    how = "" if command is None else f"; allow it with: {command}"
    return f"{principal} needs {needed.operation.name} on {where}{how}"
