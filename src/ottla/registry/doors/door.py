"""The doorkeeper of a registry, as `authentication.method` says."""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from ottla.client.addresses import Address
from ottla.client.aio.acl_view import AclView
from ottla.client.aio.cluster import Cluster
from ottla.client.security import Security
from ottla.http.auth import OPEN_DOOR, Basic, Bearer, Caller, Doorkeeper, challenge, credentials
from ottla.http.problems import Problem
from ottla.http.rights import AclRights
from ottla.registry.doors.cluster_logins import BY_PASSWORD, ClusterLogins, NobodyKnows
from ottla.registry.doors.proofs import Proofs, Shown
from ottla.registry.doors.subject_rights import SubjectRights
from ottla.registry.doors.users_file import UsersFile
from ottla.registry.settings import RegistrySettings
from ottla.security.acls import super_users
from ottla.security.lines import quoted

if TYPE_CHECKING:
    from ottla.http.call import Call

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 16
"""Callers that are looked at: whoever guesses passwords must not keep the cluster busy."""


class Knows(Protocol):
    async def shown(self, given: Basic | Bearer) -> Shown | None:
        """None: it is wrong. Raises NobodyKnows."""


class BasicDoor:
    def __init__(self, knows: Knows, methods: Sequence[str], realm: str, keep_s: float) -> None:
        self._knows = knows
        self._methods = tuple(methods)
        self._challenge = challenge("Basic" if "BASIC" in methods else "Bearer", realm)
        self._proofs = Proofs(os.urandom(32), keep_s)
        self._asked: dict[bytes, asyncio.Task[str | None]] = {}
        """Several requests of one caller are one question."""
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        given = credentials(headers)
        if given is None or type(given).__name__.upper() not in self._methods:
            raise self._refused(f"Log in: {' or '.join(self._methods).lower()} authentication is needed here.")
        mark = self._proofs.mark(given)
        principal = self._proofs.principal(mark, asyncio.get_running_loop().time())
        if principal is None:
            principal = await self._found(mark, given)
        if principal is None:
            who = quoted(given.user) if isinstance(given, Basic) else "a token"
            logger.info("%s from %s is not let in", who, host)
            raise self._refused("The user or the password, or the token, is not right.")
        return Caller(principal, host)

    def may(self, caller: Caller, need: object, call: "Call") -> bool:
        """That is for `api.needs`, which knows which subject is meant."""
        return True

    def _refused(self, why: str) -> Problem:
        return Problem(401, why, headers=self._challenge)

    async def _found(self, mark: bytes, given: Basic | Bearer) -> str | None:
        asking = self._asked.get(mark)
        if asking is None:
            asking = self._asked[mark] = asyncio.create_task(self._ask(mark, given), name="registry-door")
            asking.add_done_callback(lambda done: self._answered(mark, done))
        try:
            # Who goes away meanwhile takes the answer from nobody else.
            return await asyncio.shield(asking)
        except NobodyKnows as error:
            raise Problem(503, "The cluster cannot be asked who you are; try again.") from error

    async def _ask(self, mark: bytes, given: Basic | Bearer) -> str | None:
        async with self._turns:
            shown = await self._knows.shown(given)
        if shown is None:
            return None
        self._proofs.remember(mark, shown, asyncio.get_running_loop().time())
        return shown.principal

    def _answered(self, mark: bytes, done: "asyncio.Task[str | None]") -> None:
        del self._asked[mark]
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.warning("nobody can log in: %s", error)


def door_of(settings: RegistrySettings, brokers: Sequence[Address], security: Security) -> Doorkeeper:
    """Raises ValueError for settings that do not go together."""
    methods = [each.upper() for each in settings["authentication.method"]]
    if methods == ["NONE"] or not methods:
        return OPEN_DOOR
    if "NONE" in methods:
        raise ValueError("authentication.method: NONE and another one exclude each other")
    keep_s = settings.seconds("registry.login.cache.ms")
    return BasicDoor(
        _who_knows(settings, brokers, security, methods), methods, settings["authentication.realm"], keep_s
    )


def rights_of(settings: RegistrySettings, cluster: Cluster) -> SubjectRights | None:
    """None: whoever is let in may do everything. Raises ValueError for settings that do not go together."""
    of_the_cluster = [each.upper() for each in settings["authentication.method"]] != ["NONE"] and not settings[
        "registry.users.file"
    ]
    said = settings["registry.authorization.method"].upper()
    if said == "ACL" and not of_the_cluster:
        raise ValueError(
            "registry.authorization.method: ACLs are about the cluster's users, who log in by authentication.method="
            "BASIC or BEARER without registry.users.file"
        )
    if said == "NONE" or not of_the_cluster:
        return None
    view = AclView(
        cluster,
        super_users(settings["super.users"]),
        allow_everyone_if_no_acl_found=settings["allow.everyone.if.no.acl.found"],
    )
    return SubjectRights(view, AclRights("registry", view.rules, settings["ottla.audit.format"]))


def _who_knows(
    settings: RegistrySettings, brokers: Sequence[Address], security: Security, methods: Sequence[str]
) -> Knows:
    if settings["registry.users.file"]:
        if "BEARER" in methods:
            raise ValueError("registry.users.file: tokens (authentication.method=BEARER) are not in a file of users")
        return UsersFile(settings["registry.users.file"])
    if not security.protocol.startswith("SASL"):
        raise ValueError(
            f"authentication.method: {','.join(methods)} needs somebody who knows the users. Those of the cluster are "
            "known when the registry itself logs in there (kafkastore.security.protocol=SASL_SSL or SASL_PLAINTEXT, "
            "kafkastore.sasl.mechanism and kafkastore.sasl.jaas.config); others stand in registry.users.file"
        )
    return ClusterLogins(
        brokers, security, _mechanisms(settings, security, methods), settings.seconds("kafkastore.timeout.ms")
    )


def _mechanisms(settings: RegistrySettings, security: Security, methods: Sequence[str]) -> tuple[str, ...]:
    """The registry's own, if nothing else is said: a password is never sent by PLAIN to who was asked for SCRAM."""
    said = tuple(each.upper() for each in settings["registry.login.mechanisms"])
    own = security.credentials.mechanism if security.credentials is not None else ""
    if not said and own in BY_PASSWORD:
        return (own,)
    if not said and "BASIC" in methods:
        raise ValueError(
            f"registry.login.mechanisms: say by which of {', '.join(BY_PASSWORD)} users log in; the registry itself "
            f"does by {own}"
        )
    return said
