"""StandardAuthorizer: decides by the ACLs of the metadata image, remembers what it decided, and tells refusals to the
audit log.

What is decided for a principal from a host is remembered until the next change of an ACL, for all its connections
together, so a request costs one look into a dictionary for each topic. However many clients there are, no more than
`ottla.authorizer.cache.entries` answers are kept.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakValueDictionary

from ottla.broker.security.audit import Asked, Audit, Login
from ottla.broker.security.authorizer import Rights, Underway
from ottla.metadata.acls import acl_of
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.ids import Uuid
from ottla.model.permissions import Operation, Resource
from ottla.model.ports import Clock
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.security.acls import AclIndex, Rules, super_users
from ottla.security.acls import Rights as Decisions
from ottla.security.hosts import as_java

if TYPE_CHECKING:
    from ottla.broker.front.client import Client

_SOMEWHERE: Final = ""
"""In place of a name: no resource has an empty one."""

Question: TypeAlias = tuple[Operation, Resource, str]


class Known(dict[Question, bool]):
    """What was decided for one principal from one host. A class, as a mere dict cannot be referred to weakly."""

    __slots__ = ("__weakref__",)


class StandardAuthorizer:
    __slots__ = ("_caught_up", "_kept", "_known", "_limit", "_loaded", "audit", "index", "rules")

    def __init__(self, settings: Settings, clock: Clock, caught_up: Callable[[], bool]) -> None:
        """`caught_up` says whether this node has read the metadata log as far as the cluster has committed it."""
        self.index = AclIndex()
        self.rules = Rules(
            self.index,
            super_users(settings.get_str("super.users")),
            settings.get_bool("allow.everyone.if.no.acl.found"),
        )
        self.audit = Audit(clock, settings.get_str("ottla.audit.format"))
        self._caught_up = caught_up
        self._loaded = False
        self._limit = settings.get_int("ottla.authorizer.cache.entries")
        self._known: WeakValueDictionary[tuple[str, str], Known] = WeakValueDictionary()
        self._kept = 0

    # ---- what it knows

    def load(self, image: MetadataImage) -> None:
        self._take({acl_id: record for acl_id, record in image.acls.items()})

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._take(delta.changed_acls)

    def _take(self, changed: "Mapping[Uuid, messages.AccessControlEntryRecord | None]") -> None:
        for acl_id, record in changed.items():
            if record is not None:
                self.index.add(acl_id, acl_of(record))
            elif acl_id in self.index.acls:
                self.index.remove(acl_id)
        if changed:
            self.forget()

    def forget(self) -> None:
        for known in list(self._known.values()):
            known.clear()
        self._kept = 0

    def is_ready_for(self, principal: str) -> bool:
        if not self._loaded:
            self._loaded = self._caught_up()
        return self._loaded or principal in self.rules.super_users

    def logged_in(self, principal: str, client: "Client", mechanism: str, failure: str = "") -> None:
        self.audit.logged_in(Login(principal, as_java(client.host), client.listener, mechanism, failure))

    @property
    def acls(self) -> AclIndex:
        return self.index

    # ---- what it is asked

    def for_client(self, principal: str, host: str, underway: Underway) -> Rights:
        host = as_java(host)
        known = self._known.get((principal, host))
        if known is None:
            known = self._known[principal, host] = Known()
        return _Client(self, principal, host, underway, known).rights()

    def keep(self, known: Known, question: Question, allowed: bool) -> None:
        if self._kept >= self._limit:
            self.forget()
        self._kept += 1
        known[question] = allowed


class _Client:
    """Asks in the name of one connection."""

    __slots__ = ("_authorizer", "_decisions", "_known", "_underway", "host", "principal")

    def __init__(
        self, authorizer: StandardAuthorizer, principal: str, host: str, underway: Underway, known: Known
    ) -> None:
        self.principal = principal
        self.host = host
        self._authorizer = authorizer
        self._underway = underway
        self._known = known
        self._decisions: Decisions = authorizer.rules.rights(principal, host)

    def rights(self) -> Rights:
        known, decide = self._known, self._decide

        def may(operation: Operation, resource: Resource, name: str) -> bool:
            # As short as can be: every topic of every request passes here.
            return known.get((operation, resource, name)) or decide(operation, resource, name)

        return Rights(may, self._sees, self._somewhere, self._elsewhere)

    def _decide(self, operation: Operation, resource: Resource, name: str) -> bool:
        allowed = self._sees(operation, resource, name)
        audit = self._authorizer.audit
        asked = Asked(self.principal, self.host, operation, resource, name, self._underway.api)
        tell = audit.allowed if allowed else audit.refused
        tell(asked, lambda: self._decisions.why(operation, resource, name))
        return allowed

    def _sees(self, operation: Operation, resource: Resource, name: str) -> bool:
        question = (operation, resource, name)
        known = self._known.get(question)
        if known is not None:
            return known
        if not self._authorizer.is_ready_for(self.principal):
            return False  # and not remembered
        allowed = self._decisions.allows(operation, resource, name)
        if not allowed or not self._authorizer.audit.tells_allowed:
            self._authorizer.keep(self._known, question, allowed)
        return allowed

    def _elsewhere(self, operation: Operation, resource: Resource, name: str) -> bool:
        # What the loop remembers is not touched: an answer of before a change must not be kept after it.
        if not self._authorizer.is_ready_for(self.principal):
            return False
        return self._authorizer.rules.rights(self.principal, self.host).allows(operation, resource, name)

    def _somewhere(self, operation: Operation, resource: Resource) -> bool:
        question = (operation, resource, _SOMEWHERE)
        known = self._known.get(question)
        if known is None:
            if not self._authorizer.is_ready_for(self.principal):
                return False  # and not remembered
            known = self._decisions.allows_somewhere(operation, resource)
            self._authorizer.keep(self._known, question, known)
        return known
