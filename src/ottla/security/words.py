"""Rights as people write them: `alice may produce orders`, `write topic:orders.*`. Into entries of the list, and back.

A resource is `topic:NAME`, `group:NAME`, `transactional-id:NAME`, `delegation-token:ID`, `user:NAME` or `cluster`. A
name that ends with a star stands for all that begin so, a star alone for every name; of a name that has a star at its
end itself that is written `\\*`. Activities are what people want
rather than what is checked: each is a few operations on a few resources.
"""

from collections.abc import Callable, Iterator, Sequence
from shlex import quote
from typing import Final, NamedTuple

from ottla.model.acls import EVERYBODY, WILDCARD, Acl, Pattern, PermissionType
from ottla.model.permissions import CLUSTER_NAME, OPERATIONS, Operation, Permission, Resource
from ottla.security.hosts import as_java

_CLUSTER: Final = "cluster"
_STAR_ITSELF: Final = f"\\{WILDCARD}"
_USER: Final = "User:"
_FITTING: Final = {
    **OPERATIONS,
    Resource.CLUSTER: (*OPERATIONS[Resource.CLUSTER], Operation.DELETE),
    Resource.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT),
    Resource.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    Resource.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""What is ever asked for on a resource of the type."""


def fitting(on: Resource) -> tuple[Operation, ...]:
    return _FITTING[on]


class BadWords(ValueError):
    """The text says what was not understood, and what would be."""


class Named(NamedTuple):
    """Resources by a pattern."""

    resource: Resource
    name: str
    pattern: Pattern = Pattern.LITERAL

    def __str__(self) -> str:
        if self.resource is Resource.CLUSTER:
            return _CLUSTER
        name = f"{self.name}{WILDCARD}" if self.pattern is Pattern.PREFIXED else self.name
        if self.pattern is Pattern.LITERAL and name != WILDCARD and name.endswith(WILDCARD):
            name = f"{name.removesuffix(WILDCARD)}{_STAR_ITSELF}"
        return f"{_kind(self.resource)}:{name}"


class Wish(NamedTuple):
    """An operation on resources, as somebody wants to have it."""

    operation: Operation
    on: Named


def principal(text: str) -> str:
    """`alice` is `User:alice`, a star is everybody; what has a type keeps it. Raises BadWords."""
    if not text or text.endswith(":"):
        raise BadWords(f"{text!r} names nobody")
    if text == WILDCARD:
        return EVERYBODY
    return text if ":" in text else f"User:{text}"


def _kind(resource: Resource) -> str:
    return resource.name.lower().replace("_", "-")


_KINDS: Final = {_kind(each): each for each in Resource}


def resource(text: str) -> Named:
    """Raises BadWords."""
    kind, colon, name = text.partition(":")
    found = _KINDS.get(kind.lower().replace("_", "-"))
    if found is Resource.CLUSTER and name in ("", CLUSTER_NAME):
        return Named(found, CLUSTER_NAME)
    if found is None or not colon or not name or found is Resource.CLUSTER:
        known = ", ".join(f"{each}:NAME" for each in _KINDS if each != _CLUSTER)
        raise BadWords(f"{text!r} is no resource: {known} and {_CLUSTER} are")
    return named(found, name)


def named(kind: Resource, name: str) -> Named:
    """Raises BadWords."""
    if name.endswith(_STAR_ITSELF):
        if name == _STAR_ITSELF:
            raise BadWords(f"what is called {WILDCARD} cannot be told from all that there is, not by an ACL")
        return Named(kind, f"{name.removesuffix(_STAR_ITSELF)}{WILDCARD}")
    if name != WILDCARD and name.endswith(WILDCARD):
        return Named(kind, name.removesuffix(WILDCARD), Pattern.PREFIXED)
    return Named(kind, name)


def operation(text: str, on: Resource | None = None) -> Operation:
    """Raises BadWords for what is none, or is never asked for on such a resource."""
    name = text.upper().replace("-", "_")
    fitting = tuple(Operation) if on is None else (Operation.ALL, *_FITTING[on])
    if name not in Operation.__members__ or Operation[name] not in fitting:
        there = ", ".join(each.name.lower().replace("_", "-") for each in fitting)
        raise BadWords(f"{text!r} is no operation{'' if on is None else f' on a {_kind(on)}'}: {there} are")
    return Operation[name]


def granting(who: str, needed: Permission, name: str) -> str | None:
    """The command for a shell that allows it, and no more than that. None: there is none, as of what is called like a
    pattern."""
    about = Named(needed.resource, CLUSTER_NAME if needed.resource is Resource.CLUSTER else name)
    user = next((each for each in (who.removeprefix(_USER), who) if _reads_as(each, principal, who)), None)
    if user is None or who == EVERYBODY or about.name == WILDCARD or not _reads_as(str(about), resource, about):
        return None
    what = needed.operation.name.lower().replace("_", "-")
    return f"ottla acls allow {quote(user)} {what} {quote(str(about))} --execute"


def _reads_as(word: str, read: Callable[[str], object], meant: object) -> bool:
    try:
        return read(word) == meant
    except BadWords:
        return False


class Activity(NamedTuple):
    """What people do. Topics are patterns as in `resource`, without `topic:`."""

    name: str
    topics: Sequence[str] = ()
    group: str | None = None
    transactional_id: str | None = None


def _produce(wanted: Activity) -> Iterator[Wish]:
    yield from _topics(wanted, Operation.WRITE)


def _consume(wanted: Activity) -> Iterator[Wish]:
    yield from _topics(wanted, Operation.READ)
    if wanted.group is None:
        raise BadWords("who consumes is in a group: name it (--group)")
    yield Wish(Operation.READ, named(Resource.GROUP, wanted.group))


def _transact(wanted: Activity) -> Iterator[Wish]:
    yield from _topics(wanted, Operation.WRITE)
    if wanted.transactional_id is None:
        raise BadWords("a transactional producer has an id: name it (--transactional-id)")
    yield Wish(Operation.WRITE, named(Resource.TRANSACTIONAL_ID, wanted.transactional_id))
    if wanted.group is not None:  # whose offsets are committed with the transaction
        yield Wish(Operation.READ, named(Resource.GROUP, wanted.group))


def _stream(wanted: Activity) -> Iterator[Wish]:
    """A Kafka Streams application: its topics, and all that it names after itself."""
    yield from _topics(wanted, Operation.READ)
    yield from _topics(wanted, Operation.WRITE)
    if wanted.group is None:
        raise BadWords("an application has an id, which is its group: name it (--group)")
    own = wanted.group.removesuffix(WILDCARD)
    yield Wish(Operation.READ, Named(Resource.GROUP, own))
    yield Wish(Operation.ALL, Named(Resource.TOPIC, own, Pattern.PREFIXED))
    yield Wish(Operation.WRITE, Named(Resource.TRANSACTIONAL_ID, own, Pattern.PREFIXED))


def _topics(wanted: Activity, what: Operation) -> Iterator[Wish]:
    if not wanted.topics:
        raise BadWords(f"which topics? {wanted.name} takes at least one")
    return (Wish(what, named(Resource.TOPIC, name.removeprefix("topic:"))) for name in wanted.topics)


ACTIVITIES: Final = {"produce": _produce, "consume": _consume, "transact": _transact, "stream": _stream}


def wishes(
    what: str, on: Sequence[str], *, group: str | None = None, transactional_id: str | None = None
) -> list[Wish]:
    """Of an activity and its topics, or of an operation and its resources. Raises BadWords."""
    activity = ACTIVITIES.get(what.lower())
    if activity is not None:
        return list(activity(Activity(what.lower(), on, group, transactional_id)))
    if what.upper().replace("-", "_") not in Operation.__members__:
        raise BadWords(f"{what!r} is neither an activity ({', '.join(ACTIVITIES)}) nor an operation")
    if not on:
        raise BadWords(f"{what} on what? For example topic:orders")
    found = [resource(each) for each in on]
    return [Wish(operation(what, each.resource), each) for each in found]


_KEYWORDS: Final = ("group", "transactional-id", "from")


def phrase(text: str) -> tuple[list[Wish], str]:
    """`consume orders group billing`, `write topic:orders from 10.0.0.1`: what is wanted, and from which host. Raises
    BadWords."""
    given: dict[str, str] = {}
    words = text.split()
    for keyword in _KEYWORDS:
        if keyword in words[1:]:
            at = words.index(keyword, 1)
            if at + 1 == len(words):
                raise BadWords(f"{text!r} ends after {keyword}: a name is expected")
            given[keyword] = words[at + 1]
            del words[at : at + 2]
    if not words:
        raise BadWords("nothing is wanted: produce TOPIC, consume TOPIC group GROUP, OPERATION RESOURCE, …")
    wanted = wishes(words[0], words[1:], group=given.get("group"), transactional_id=given.get("transactional-id"))
    return wanted, as_java(given.get("from", WILDCARD))


def acls(who: str, wanted: Sequence[Wish], permission: PermissionType, host: str = WILDCARD) -> list[Acl]:
    return list(
        dict.fromkeys(
            Acl(each.on.resource, each.on.name, each.on.pattern, who, host, each.operation, permission)
            for each in wanted
        )
    )


def resource_text(acl: Acl) -> str:
    """As people write it; of a type that is not known here, its number."""
    if acl.resource not in list(Resource) or acl.pattern not in list(Pattern):
        return f"{acl.resource}:{acl.name} (pattern {acl.pattern})"
    return str(Named(Resource(acl.resource), acl.name, Pattern(acl.pattern)))


def operation_text(code: int) -> str:
    return Operation(code).name if code in list(Operation) else str(code)


def permission_text(code: int) -> str:
    return PermissionType(code).name if code in list(PermissionType) else str(code)


def sentence(acl: Acl) -> str:
    """`User:alice may WRITE topic:orders`, for people."""
    verb = "may not" if acl.permission == PermissionType.DENY else "may"
    place = "" if acl.host == WILDCARD else f" from {acl.host}"
    return f"{acl.principal} {verb} {operation_text(acl.operation)} {resource_text(acl)}{place}"


class Expectation(NamedTuple):
    """A line of a file that says what is to hold: `alice may write topic:orders`, `bob may not read topic:payments`."""

    line: int
    principal: str
    allowed: bool
    needed: Permission
    name: str
    host: str

    def __str__(self) -> str:
        verb = "may" if self.allowed else "may not"
        where = "" if self.host == WILDCARD else f" from {self.host}"
        about = Named(self.needed.resource, self.name)
        return f"{self.principal} {verb} {self.needed.operation.name.lower()} {about}{where}"


def expectations(text: str) -> list[Expectation]:
    """Lines of words; what follows a # is for people. Raises BadWords, with the number of the line."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            try:
                found.append(_expectation(number, words))
            except BadWords as error:
                raise BadWords(f"line {number}: {error}") from error
    return found


def _expectation(number: int, words: list[str]) -> Expectation:
    match words:
        case [who, "may", "not", what, on, *rest]:
            allowed = False
        case [who, "may", what, on, *rest]:
            allowed = True
        case _:
            raise BadWords("NAME may [not] OPERATION RESOURCE [from HOST] is expected")
    match rest:
        case []:
            host = WILDCARD
        case ["from", host]:
            pass
        case _:
            raise BadWords(f"{' '.join(rest)!r} is too much: only `from HOST` may follow")
    about = resource(on)
    if about.pattern is Pattern.PREFIXED or about.name == WILDCARD:
        raise BadWords(f"{on}: one name is expected, a pattern cannot be asked for")
    return Expectation(
        number, principal(who), allowed, Permission(operation(what, about.resource), about.resource), about.name, host
    )
