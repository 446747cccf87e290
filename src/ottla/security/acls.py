"""Kafka's StandardAuthorizer: who may do what, decided from the entries of an access control list.

The rule. A super user may do everything. Of the entries whose pattern covers the resource, those count that are for the
principal (or `User:*`), for the host (or `*`) and for the operation (or ALL). A DENY among them denies, else an ALLOW
allows; an ALLOW of READ, WRITE, DELETE or ALTER also allows DESCRIBE, one of ALTER_CONFIGS also DESCRIBE_CONFIGS. If no
entry of anybody covers the resource, `allow.everyone.if.no.acl.found` decides.

The index. Entries for the same principal and host on the same pattern differ only by operation and permission, so they
are the bits of one number: 1 << operation for ALLOW, sixteen bits higher for DENY. A decision collects the numbers of
the patterns that cover a name (the name itself, `*`, and one dictionary for each length that prefixes have) for up to
four pairs of principal and host, and looks at two masks. An entry that comes or goes changes one number.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ottla.model.acls import EVERYBODY, WILDCARD, Acl, Pattern, PermissionType
from ottla.model.ids import Uuid
from ottla.model.permissions import Operation, Resource

_DENY_SHIFT: Final = 16
_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
_MADE_UP: Final = "hardcode"
"""The name with which Kafka asks whether somebody may write to some topic, whatever that topic is."""


def _bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)


_EXACTLY: Final = {operation: _bits({operation, Operation.ALL}) for operation in Operation}
_ALLOWED_BY: Final = {each: bits | _bits(_IMPLIED_BY.get(each, ())) for each, bits in _EXACTLY.items()}
_DENIED_BY: Final = {each: bits << _DENY_SHIFT for each, bits in _EXACTLY.items()}


def _bit(acl: Acl) -> int:
    """0 for what no version that we know of can ask for."""
    if not Operation.ALL <= acl.operation <= Operation.TWO_PHASE_COMMIT:
        return 0
    if acl.permission == PermissionType.ALLOW:
        return 1 << acl.operation
    return 1 << acl.operation << _DENY_SHIFT if acl.permission == PermissionType.DENY else 0


class Rule(Enum):
    """What a verdict rests on, as Kafka's audit log calls it."""

    SUPER_USER = "SuperUser"
    MATCHING_ACL = "MatchingAcl"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"


class Verdict(NamedTuple):
    allowed: bool
    rule: Rule
    acl: Acl | None = None
    """The entry that decided, if one did."""


class Patterns:
    """Numbers by pattern: of the literal name, of `*`, and of prefixes by their length."""

    __slots__ = ("by_length", "everywhere", "literals")

    def __init__(self) -> None:
        self.literals: dict[str, int] = {}
        self.everywhere = 0
        """Of the literal `*`."""
        self.by_length: list[tuple[int, dict[str, int]]] = []
        """Prefixes, the shortest first."""

    def __bool__(self) -> bool:
        return bool(self.literals or self.everywhere or self.by_length)

    def get(self, pattern: int, name: str) -> int:
        if pattern == Pattern.PREFIXED:
            return self._prefixes(len(name)).get(name, 0)
        return self.everywhere if name == WILDCARD else self.literals.get(name, 0)

    def put(self, pattern: int, name: str, number: int) -> None:
        """0 takes the pattern out."""
        if pattern == Pattern.PREFIXED:
            self._put_prefix(name, number)
        elif name == WILDCARD:
            self.everywhere = number
        elif number:
            self.literals[name] = number
        else:
            self.literals.pop(name, None)

    def _prefixes(self, length: int) -> dict[str, int]:
        at = bisect_left(self.by_length, length, key=_length)
        return self.by_length[at][1] if at < len(self.by_length) and self.by_length[at][0] == length else {}

    def _put_prefix(self, prefix: str, number: int) -> None:
        at = bisect_left(self.by_length, len(prefix), key=_length)
        if at == len(self.by_length) or self.by_length[at][0] != len(prefix):
            # A list of its own: who is in the middle of the old one, in another thread, goes on with that.
            self.by_length = [*self.by_length[:at], (len(prefix), {}), *self.by_length[at:]]
        prefixes = self.by_length[at][1]
        if number:
            prefixes[prefix] = number
            return
        prefixes.pop(prefix, None)
        if not prefixes:
            self.by_length = [*self.by_length[:at], *self.by_length[at + 1 :]]

    def covering(self, name: str) -> int:
        """The bits of all patterns that cover the name."""
        found = self.everywhere | self.literals.get(name, 0)
        longest = len(name)
        for length, prefixes in self.by_length:
            if length > longest:
                break
            found |= prefixes.get(name[:length], 0)
        return found

    def matches(self, name: str) -> Iterator[tuple[Pattern, str, int]]:
        """The patterns that may cover the name, 0 for those that do not."""
        yield Pattern.LITERAL, WILDCARD, self.everywhere
        yield Pattern.LITERAL, name, self.literals.get(name, 0)
        for length, prefixes in self.by_length:
            yield Pattern.PREFIXED, name[:length], prefixes.get(name[:length], 0)

    def under_prefix(self, name: str, bits: int) -> bool:
        """Whether a prefix with any of these bits covers the name."""
        return any(prefixes.get(name[:length], 0) & bits for length, prefixes in self.by_length)

    def prefixes(self) -> Iterator[tuple[str, int]]:
        for _, prefixes in self.by_length:
            yield from prefixes.items()


def _length(prefixes: tuple[int, dict[str, int]]) -> int:
    return prefixes[0]


Subject = tuple[str, str]
"""Principal and host as an entry names them."""


class AclIndex:
    """All entries there are. `add` and `remove` cost the same however many there are."""

    __slots__ = ("_covered", "_rules", "_times", "acls", "version")

    def __init__(self) -> None:
        self.acls: dict[Uuid, Acl] = {}
        self._times: dict[Acl, int] = {}
        """Under how many ids: one, unless a log is damaged, and then the last one to go takes the right away."""
        self._rules: dict[int, dict[Subject, Patterns]] = {}
        self._covered: dict[int, Patterns] = {}
        """How many entries, of anybody, each pattern has."""
        self.version = 0
        """Another one after each change: what was found out before may no longer hold."""

    def add(self, acl_id: Uuid, acl: Acl) -> None:
        if acl_id in self.acls:
            self.remove(acl_id)
        self.version += 1
        self.acls[acl_id] = acl
        times = self._times.get(acl, 0)
        self._times[acl] = times + 1
        if not times:
            self._count(acl, 1)
            subjects = self._rules.setdefault(acl.resource, {})
            patterns = subjects.get((acl.principal, acl.host))
            if patterns is None:
                patterns = subjects[acl.principal, acl.host] = Patterns()
            patterns.put(acl.pattern, acl.name, patterns.get(acl.pattern, acl.name) | _bit(acl))

    def remove(self, acl_id: Uuid) -> None:
        self.version += 1
        acl = self.acls.pop(acl_id)
        if self._times[acl] > 1:
            self._times[acl] -= 1
            return
        del self._times[acl]
        self._count(acl, -1)
        subjects = self._rules[acl.resource]
        patterns = subjects[acl.principal, acl.host]
        patterns.put(acl.pattern, acl.name, patterns.get(acl.pattern, acl.name) & ~_bit(acl))
        if not patterns:
            del subjects[acl.principal, acl.host]

    def _count(self, acl: Acl, by: int) -> None:
        covered = self._covered.get(acl.resource)
        if covered is None:
            covered = self._covered[acl.resource] = Patterns()
        covered.put(acl.pattern, acl.name, covered.get(acl.pattern, acl.name) + by)

    def __len__(self) -> int:
        return len(self.acls)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._times

    def __iter__(self) -> Iterator[Acl]:
        """Each entry once."""
        return iter(self._times)

    def is_covered(self, resource: int, name: str) -> bool:
        """Whether any entry, of anybody, is about this resource."""
        covered = self._covered.get(resource)
        return covered is not None and covered.covering(name) != 0

    def rules_for(self, resource: int, subjects: tuple[Subject, ...]) -> list[Patterns]:
        """What counts for them, of one type of resource."""
        known = self._rules.get(resource, {})
        return [found for each in subjects if (found := known.get(each)) is not None]

    def entry(self, subjects: tuple[Subject, ...], resource: int, name: str, bits: int) -> Acl | None:
        """An entry that counts for them and has any of these bits."""
        known = self._rules.get(resource, {})
        for subject in subjects:
            for pattern, pattern_name, number in known[subject].matches(name) if subject in known else ():
                for acl in _entries(resource, pattern_name, pattern, subject, number & bits):
                    return acl
        return None


def _entries(resource: int, name: str, pattern: int, subject: Subject, number: int) -> Iterator[Acl]:
    """What the bits of one number stand for."""
    for permission, bits in ((PermissionType.DENY, number >> _DENY_SHIFT), (PermissionType.ALLOW, number)):
        for operation in Operation:
            if bits >> operation & 1:
                yield Acl(resource, name, pattern, *subject, operation, permission)


@dataclass(frozen=True, slots=True)
class Rules:
    """What is decided by. The index goes on changing; every decision is of the moment."""

    index: AclIndex
    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False

    def default(self, resource: Resource, name: str) -> bool:
        """For what no entry allows or denies to somebody."""
        return self.allow_everyone_if_no_acl_found and not self.index.is_covered(resource, name)

    def rights(self, principal: str, host: str) -> "Rights":
        return SuperRights(self, principal, host) if principal in self.super_users else Rights(self, principal, host)


class Rights:
    """What one principal may do from one host."""

    __slots__ = ("_found", "_rules", "_subjects", "_version")

    def __init__(self, rules: Rules, principal: str, host: str) -> None:
        self._rules = rules
        self._version = -1
        self._found: dict[Resource, list[Patterns]] = {}
        """By type, what counts for this client: looked up anew after a change."""
        self._subjects: tuple[Subject, ...] = tuple(
            dict.fromkeys(((principal, host), (principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)))
        )

    def allows(self, operation: Operation, resource: Resource, name: str) -> bool:
        found = 0
        for patterns in self._patterns(resource):
            found |= patterns.covering(name)
        if found & _DENIED_BY[operation]:
            return False
        return found & _ALLOWED_BY[operation] != 0 or self._rules.default(resource, name)

    def _patterns(self, resource: Resource) -> list[Patterns]:
        index = self._rules.index
        if self._version != index.version:
            self._version = index.version
            self._found.clear()
        found = self._found.get(resource)
        if found is None:
            found = self._found[resource] = index.rules_for(resource, self._subjects)
        return found

    def why(self, operation: Operation, resource: Resource, name: str) -> Verdict:
        """As `allows`, with the rule: for people and for logs."""
        for bits, allowed in ((_DENIED_BY[operation], False), (_ALLOWED_BY[operation], True)):
            acl = self._rules.index.entry(self._subjects, resource, name, bits)
            if acl is not None:
                return Verdict(allowed, Rule.MATCHING_ACL, acl)
        allowed = self._rules.default(resource, name)
        return Verdict(allowed, Rule.DEFAULT_ALLOW if allowed else Rule.DEFAULT_DENY)

    def allows_somewhere(self, operation: Operation, resource: Resource) -> bool:
        """Whether there is a name, known or not, for which it is allowed: asked of an idempotent producer, who has not
        said yet where it will write (KIP-679)."""
        if self.allows(operation, resource, _MADE_UP):
            return True
        found = self._patterns(resource)
        denied, allowed = _DENIED_BY[operation], _EXACTLY[operation]
        everywhere = 0
        for patterns in found:
            everywhere |= patterns.everywhere
        if everywhere & (denied | allowed):
            return not everywhere & denied
        return any(
            not any(each.literals.get(name, 0) & denied or each.under_prefix(name, denied) for each in found)
            for name in _names_with(found, allowed)
        ) or any(
            not any(each.under_prefix(prefix, denied) for each in found) for prefix in _prefixes_with(found, allowed)
        )


class SuperRights(Rights):
    """A super user may do everything, whatever the entries say."""

    __slots__ = ()

    def allows(self, operation: Operation, resource: Resource, name: str) -> bool:
        return True

    def why(self, operation: Operation, resource: Resource, name: str) -> Verdict:
        return Verdict(True, Rule.SUPER_USER)


def _names_with(found: list[Patterns], bits: int) -> Iterator[str]:
    return (name for rules in found for name, number in rules.literals.items() if number & bits)


def _prefixes_with(found: list[Patterns], bits: int) -> Iterator[str]:
    return (prefix for rules in found for prefix, number in rules.prefixes() if number & bits)


def super_users(text: str) -> frozenset[str]:
    """`super.users`: principals parted by semicolons, as a name may contain commas."""
    return frozenset(filter(None, map(str.strip, text.split(";"))))
