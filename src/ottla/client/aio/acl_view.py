"""The cluster's ACLs as a service beside it sees them: asked for when somebody's rights are to be decided and the last
answer is some seconds old, so that a change counts soon and a service that nobody uses costs the brokers nothing.

The service's own user needs DESCRIBE on the cluster. A cluster without an authorizer allows everything to everybody,
and so does the view of it.
"""

import asyncio
import logging
from typing import Final

from ottla.client.acls import describe_acls
from ottla.client.aio.cluster import Cluster
from ottla.client.errors import ClientError, KafkaError
from ottla.model.acls import Acl, AclFilter
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.security.acls import AclIndex, Rules

logger = logging.getLogger(__name__)

REFRESH_S: Final = 5.0
_LONGEST_WAIT_S: Final = 2.0
"""A cluster that does not answer holds nobody up for longer: what is known counts then."""
_OPEN: Final = Rules(AclIndex(), allow_everyone_if_no_acl_found=True)


class AclView:
    """Await `fresh` before asking `rules`, which are None until the first answer has come. An answer that fails to come
    leaves what is known in force: rights that were taken away meanwhile are taken away when the cluster can be asked
    again."""

    def __init__(
        self,
        cluster: Cluster,
        super_users: frozenset[str] = frozenset(),
        *,
        allow_everyone_if_no_acl_found: bool = False,
        refresh_s: float = REFRESH_S,
    ) -> None:
        self._cluster = cluster
        self._super_users = super_users
        self._allow_everyone = allow_everyone_if_no_acl_found
        self._refresh_s = refresh_s
        self._asking: asyncio.Task[None] | None = None
        self._asked_s = -refresh_s
        self._entries: list[Acl] | None = None
        self._rules: Rules | None = None

    async def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def rules(self) -> Rules | None:
        return self._rules

    async def fresh(self) -> None:
        """Asks if the last answer is too old. Many callers ask once."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._asked_s < self._refresh_s:
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(loop), name="the view of the ACLs")
        await asyncio.wait((self._asking,), timeout=_LONGEST_WAIT_S)

    async def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        await self.refresh()
        self._asked_s = loop.time()

    async def refresh(self) -> None:
        """Asks now."""
        try:
            entries = sorted(await self._cluster.run(describe_acls.steps(self._cluster.routing, AclFilter())))
        except KafkaError as error:
            if error.error == Errors.SECURITY_DISABLED:
                self._rules = _OPEN
            else:
                logger.warning("the ACLs of the cluster cannot be read: %s", error)
            return
        except ClientError as error:
            logger.warning("the cluster cannot be asked for its ACLs: %s", error)
            return
        if entries != self._entries or self._rules is None:
            self._entries = entries
            self._rules = self._of(entries)

    def _of(self, entries: list[Acl]) -> Rules:
        index = AclIndex()
        for number, acl in enumerate(entries):
            index.add(Uuid(number.to_bytes(16)), acl)
        return Rules(index, self._super_users, self._allow_everyone)
