"""Asks the cluster who somebody is: by a login at a broker with what the caller showed, and nothing else."""

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import Sequence
from typing import Final

from ottla.client.addresses import Address
from ottla.client.aio.connection import Connection
from ottla.client.aio.login import log_in
from ottla.client.errors import ClientError, LoginFailed
from ottla.client.security import Security
from ottla.http.auth import Basic, Bearer
from ottla.registry.doors.proofs import Shown
from ottla.security.sasl.speaker import OAUTHBEARER, Credentials

logger = logging.getLogger(__name__)

BY_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_CLIENT_ID: Final = "ottla-registry-door"


class NobodyKnows(Exception):
    """Whoever could tell cannot be asked now."""


class ClusterLogins:
    def __init__(
        self, brokers: Sequence[Address], security: Security, mechanisms: Sequence[str], timeout_s: float
    ) -> None:
        """`security` is how the registry itself reaches the brokers; its credentials are not used here."""
        assert security.protocol.startswith("SASL"), security.protocol
        self._brokers = tuple(brokers)
        self._security = security._replace(credentials=None)
        self._mechanisms = tuple(mechanisms)
        self._timeout_s = timeout_s

    async def shown(self, given: Basic | Bearer) -> Shown | None:
        """None: the cluster does not let it in. Raises NobodyKnows."""
        if isinstance(given, Bearer):
            holds_s = await self._let_in(Credentials(OAUTHBEARER, password=given.token))
            return None if holds_s is None else Shown(f"User:{subject(given.token)}", holds_s)
        if "\0" in given.user + given.password or not given.user:
            return None
        for mechanism in self._mechanisms:
            holds_s = await self._let_in(Credentials(mechanism, given.user, given.password))
            if holds_s is not None:
                return Shown(f"User:{given.user}", holds_s)
        return None

    async def _let_in(self, credentials: Credentials) -> float | None:
        """For how many seconds at most; 0: no limit is known."""
        reasons = []
        until_s = asyncio.get_running_loop().time() + self._timeout_s
        for broker in self._brokers:
            try:
                connection = await Connection.open(
                    broker, client_id=_CLIENT_ID, until_s=until_s, security=self._security
                )
                try:
                    return await log_in(connection, credentials)
                finally:
                    connection.close()
            except LoginFailed as refused:
                logger.info("%s", refused)
                return None
            except (ClientError, OSError, TimeoutError) as error:
                reasons.append(f"{broker}: {str(error) or type(error).__name__}")
        raise NobodyKnows("; ".join(reasons))


def subject(token: str) -> str:
    """Whom a JSON web token names. Only of use after a broker has found it genuine."""
    try:
        claims = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        name = found.get("sub")
    except (IndexError, ValueError, binascii.Error, AttributeError, RecursionError):
        name = None
    return name if isinstance(name, str) and name else "bearer"
