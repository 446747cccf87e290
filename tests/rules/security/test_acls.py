"""StandardAuthorizer's rule, by examples, and beside a twin that looks at every entry for every question."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.acls import Acl, AclFilter, Pattern, PermissionType
from ottla.model.ids import Uuid
from ottla.model.permissions import Operation, Resource
from ottla.security.acls import AclIndex, Rule, Rules, Verdict, super_users

ALICE, BOB = "User:alice", "User:bob"
HERE, THERE = "10.0.0.1", "10.0.0.2"
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = Pattern.LITERAL, Pattern.PREFIXED
TOPIC = Resource.TOPIC


def topic(
    name: str = "orders",
    pattern: Pattern = LITERAL,
    principal: str = ALICE,
    host: str = "*",
    operation: Operation = Operation.READ,
    permission: PermissionType = ALLOW,
) -> Acl:
    return Acl(TOPIC, name, pattern, principal, host, operation, permission)


def number(at: int) -> Uuid:
    return Uuid(at.to_bytes(16))


def index_of(*acls: Acl) -> AclIndex:
    index = AclIndex()
    for at, acl in enumerate(acls):
        index.add(number(at), acl)
    return index


def rules_of(*acls: Acl, everyone: bool = False, supers: str = "") -> Rules:
    return Rules(index_of(*acls), super_users(supers), everyone)


def allows(
    *acls: Acl,
    who: str = ALICE,
    host: str = HERE,
    operation: Operation = Operation.READ,
    name: str = "orders",
    everyone: bool = False,
    supers: str = "",
) -> bool:
    return rules_of(*acls, everyone=everyone, supers=supers).rights(who, host).allows(operation, TOPIC, name)


def test_what_nobody_has_allowed_is_denied() -> None:
    assert not allows()


def test_a_super_user_may_do_everything_whatever_the_entries_say() -> None:
    assert allows(topic(permission=DENY), supers="User:CN=a,O=b; User:alice ;")


def test_a_literal_covers_its_name_alone_and_a_star_every_name() -> None:
    assert [allows(topic("orders"), name=name) for name in ("orders", "orders2")] == [True, False]
    assert allows(topic("*"), name="whatever")


def test_a_prefix_covers_what_begins_with_it_and_a_star_in_it_is_a_star() -> None:
    names = ("orders", "orders.eu", "order")
    assert [allows(topic("orders", PREFIXED), name=name) for name in names] == [True, True, False]
    assert [allows(topic("*", PREFIXED), name=name) for name in ("*x", "x")] == [True, False]


def test_an_entry_is_for_its_principal_or_for_every_user() -> None:
    assert [allows(topic(principal=each)) for each in (ALICE, "User:*", BOB, "Group:alice")] == [
        True,
        True,
        False,
        False,
    ]
    assert not allows(topic(principal="Group:*"), who="Group:staff")


def test_an_entry_is_for_its_host_to_the_letter_or_for_all_hosts() -> None:
    assert [allows(topic(host=each)) for each in (HERE, "*", THERE, "10.0.0.0/8")] == [True, True, False, False]


def test_a_deny_wins_over_every_allow() -> None:
    allowed = (topic(), topic("*"), topic("or", PREFIXED, "User:*"))
    assert allows(*allowed)
    assert not allows(*allowed, topic("o", PREFIXED, "User:*", HERE, Operation.ALL, DENY))


@pytest.mark.parametrize("given", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_who_may_use_a_thing_may_look_at_it(given: Operation) -> None:
    assert allows(topic(operation=given), operation=Operation.DESCRIBE)
    # Denying one use does not make it invisible.
    assert allows(
        topic(operation=Operation.DESCRIBE),
        topic(operation=given, permission=DENY),
        operation=Operation.DESCRIBE,
    )


def test_who_may_alter_settings_may_look_at_them() -> None:
    settings = topic(operation=Operation.ALTER_CONFIGS)
    assert allows(settings, operation=Operation.DESCRIBE_CONFIGS)
    assert not allows(settings, operation=Operation.DESCRIBE)


def test_all_stands_for_every_operation_allowed_or_denied() -> None:
    assert all(allows(topic(operation=Operation.ALL), operation=each) for each in Operation)
    assert not any(
        allows(topic(operation=Operation.ALL), topic(operation=Operation.ALL, permission=DENY), operation=each)
        for each in Operation
    )


def test_two_phase_commit_implies_nothing() -> None:
    given = topic(operation=Operation.TWO_PHASE_COMMIT)
    assert [each for each in Operation if allows(given, operation=each)] == [Operation.TWO_PHASE_COMMIT]


def test_where_there_is_no_entry_at_all_everyone_may_if_the_setting_says_so() -> None:
    assert allows(everyone=True)
    assert allows(topic("payments", principal=BOB), everyone=True)
    # One of somebody else is enough.
    assert not allows(topic("orders", principal=BOB, operation=Operation.ALTER), everyone=True)
    assert not allows(topic("or", PREFIXED, BOB), everyone=True)
    assert not allows(topic("*", principal=BOB), everyone=True)


def test_a_verdict_names_the_rule_and_the_entry_it_rests_on() -> None:
    read, denied = topic(), topic("ord", PREFIXED, "User:*", operation=Operation.ALL, permission=DENY)
    question = Operation.DESCRIBE, TOPIC, "orders"
    assert rules_of(supers=ALICE).rights(ALICE, HERE).why(*question) == Verdict(True, Rule.SUPER_USER)
    assert rules_of().rights(ALICE, HERE).why(*question) == Verdict(False, Rule.DEFAULT_DENY)
    assert rules_of(everyone=True).rights(ALICE, HERE).why(*question) == Verdict(True, Rule.DEFAULT_ALLOW)
    assert rules_of(read).rights(ALICE, HERE).why(*question) == Verdict(True, Rule.MATCHING_ACL, read)
    assert rules_of(read, denied).rights(ALICE, HERE).why(*question) == Verdict(False, Rule.MATCHING_ACL, denied)


def somewhere(*acls: Acl, operation: Operation = Operation.WRITE, everyone: bool = False) -> bool:
    return rules_of(*acls, everyone=everyone).rights(ALICE, HERE).allows_somewhere(operation, TOPIC)


def test_kip_679_who_may_write_to_some_topic_may_have_a_producer_id() -> None:
    def write(name: str, pattern: Pattern = LITERAL, permission: PermissionType = ALLOW) -> Acl:
        return topic(name, pattern, operation=Operation.WRITE, permission=permission)

    assert not somewhere()
    assert somewhere(everyone=True)
    assert somewhere(write("*"))
    assert somewhere(write("a"))
    assert somewhere(write("a", PREFIXED))
    assert not somewhere(write("a"), write("*", permission=DENY))
    assert not somewhere(write("a"), write("a", permission=DENY))
    assert not somewhere(write("ab"), write("a", PREFIXED, DENY))
    assert not somewhere(write("ab", PREFIXED), write("ab", PREFIXED, DENY))
    # A literal that is denied leaves the rest of the prefix, and a longer prefix what is outside of it.
    assert somewhere(write("ab", PREFIXED), write("ab", permission=DENY))
    assert somewhere(write("ab", PREFIXED), write("abc", PREFIXED, DENY))
    # Implied rights do not count here, as in Kafka.
    assert not somewhere(write("a"), operation=Operation.DESCRIBE)


def test_an_entry_that_two_ids_have_counts_until_both_are_gone() -> None:
    index = index_of(topic(permission=DENY), topic(permission=DENY), topic())
    rights = Rules(index).rights(ALICE, HERE)
    index.remove(number(0))
    assert not rights.allows(Operation.READ, TOPIC, "orders")
    index.remove(number(1))
    assert rights.allows(Operation.READ, TOPIC, "orders")


def test_what_a_later_kafka_may_have_written_is_kept_and_allows_nothing() -> None:
    strange = Acl(TOPIC, "orders", LITERAL, ALICE, "*", 99, ALLOW)
    index = index_of(strange)
    assert list(filter(AclFilter(resource=TOPIC).matches, index)) == [strange]
    assert not any(Rules(index).rights(ALICE, HERE).allows(each, TOPIC, "orders") for each in Operation)
    index.remove(number(0))
    assert len(index) == 0


# ---- the twin

names = st.sampled_from(["a", "ab", "abc", "b", "ba", "*", "hardcode", "hard"])
principals = st.sampled_from([ALICE, BOB, "User:*", "Group:alice"])
hosts = st.sampled_from([HERE, THERE, "*"])
operations = st.sampled_from(list(Operation))
resources = st.sampled_from([Resource.TOPIC, Resource.GROUP])
acls = st.builds(
    Acl,
    resources,
    names,
    st.sampled_from(list(Pattern)),
    principals,
    hosts,
    st.sampled_from([Operation.ALL, Operation.READ, Operation.WRITE, Operation.ALTER_CONFIGS, Operation.DESCRIBE]),
    st.sampled_from(list(PermissionType)),
)
IMPLIED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def fits(acl: Acl, who: str, host: str) -> bool:
    return acl.principal in (who, "User:*") and acl.host in (host, "*")


def brute(
    entries: list[Acl], who: str, host: str, operation: Operation, resource: Resource, name: str, *, everyone: bool
) -> bool:
    covering = [acl for acl in entries if acl.resource == resource and acl.covers(name)]
    if not covering:
        return everyone
    mine = [acl for acl in covering if fits(acl, who, host)]
    if any(acl.permission == DENY and acl.operation in (operation, Operation.ALL) for acl in mine):
        return False
    granting = {operation, Operation.ALL} | IMPLIED.get(operation, set())
    return any(acl.permission == ALLOW and acl.operation in granting for acl in mine)


def brute_somewhere(
    entries: list[Acl], who: str, host: str, operation: Operation, resource: Resource, *, everyone: bool
) -> bool:
    if brute(entries, who, host, operation, resource, "hardcode", everyone=everyone):
        return True
    mine = [
        acl
        for acl in entries
        if acl.resource == resource and fits(acl, who, host) and acl.operation in (operation, Operation.ALL)
    ]
    denied = [acl for acl in mine if acl.permission == DENY]
    allowed = [acl for acl in mine if acl.permission == ALLOW]
    if any(acl.pattern == LITERAL and acl.name == "*" for acl in denied):
        return False
    if any(acl.pattern == LITERAL and acl.name == "*" for acl in allowed):
        return True
    return any(
        not any(
            acl.name.startswith(no.name) if no.pattern == PREFIXED else acl.pattern == LITERAL and acl.name == no.name
            for no in denied
        )
        for acl in allowed
    )


@given(st.lists(acls, max_size=8), principals, hosts, operations, resources, names, st.booleans())
def test_the_index_decides_as_a_look_at_every_entry_does(
    entries: list[Acl], who: str, host: str, operation: Operation, resource: Resource, name: str, everyone: bool
) -> None:
    rights = rules_of(*entries, everyone=everyone).rights(who, host)
    expected = brute(entries, who, host, operation, resource, name, everyone=everyone)
    assert rights.allows(operation, resource, name) == expected
    verdict = rights.why(operation, resource, name)
    assert verdict.allowed == expected
    assert verdict.acl is None or verdict.acl in entries
    assert rights.allows_somewhere(operation, resource) == brute_somewhere(
        entries, who, host, operation, resource, everyone=everyone
    )


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | acls), max_size=30), operations, resources, names)
def test_entries_that_come_and_go_leave_what_is_left(
    script: list[tuple[int, Acl | None]], operation: Operation, resource: Resource, name: str
) -> None:
    index = AclIndex()
    left: dict[Uuid, Acl] = {}
    rules = Rules(index, allow_everyone_if_no_acl_found=True)
    rights = rules.rights(ALICE, HERE)
    for at, acl in script:
        if acl is not None:
            index.add(number(at), acl)
            left[number(at)] = acl
        elif number(at) in left:
            index.remove(number(at))
            del left[number(at)]
        assert rights.allows(operation, resource, name) == brute(
            list(left.values()), ALICE, HERE, operation, resource, name, everyone=True
        )
    assert index.acls == left
    assert set(filter(AclFilter().matches, index)) == set(left.values())


# ---- filters


def test_kip_290_a_filter_finds_a_name_as_it_is_written_or_what_covers_it() -> None:
    entries = topic("orders"), topic("ord", PREFIXED), topic("*"), topic("orders", PREFIXED), topic("x")
    index = index_of(*entries)

    def found(**wanted: object) -> list[int]:
        matches = AclFilter(**wanted).matches  # type: ignore[arg-type]
        return [entries.index(acl) for acl in index if matches(acl)]

    assert found(name="orders") == [0, 3]
    assert found(name="orders", pattern=2) == [0, 1, 2, 3]
    assert found(name="orders", pattern=LITERAL) == [0]
    assert found(pattern=PREFIXED) == [1, 3]
    assert found() == [0, 1, 2, 3, 4]
    assert found(principal=BOB) == []


# ---- cost


def test_ten_thousand_entries_are_no_reason_to_look_at_them_one_by_one() -> None:
    """A decision that looked at each would take a millisecond; a change that built the index anew, a hundred."""
    dice = random.Random(7)
    index = AclIndex()
    for at in range(10_000):
        name = "".join(dice.choices("abcdef.", k=dice.randint(3, 20)))
        index.add(number(at), topic(name, dice.choice(list(Pattern)), f"User:u{at % 500}"))
    rights = Rules(index).rights("User:u7", HERE)
    questions = ["".join(dice.choices("abcdef.", k=20)) for _ in range(200)]
    begin = time.process_time()
    for name in questions:
        rights.allows(Operation.READ, TOPIC, name)
    asked = time.process_time()
    for at in range(200):
        index.remove(number(at))
    changed = time.process_time()
    assert (asked - begin) / len(questions) < 200e-6
    assert (changed - asked) / 200 < 500e-6
