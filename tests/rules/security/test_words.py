"""Rights as people write them."""

import shlex

import pytest

from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.permissions import (
    DESCRIBE_CLUSTER,
    DESCRIBE_CLUSTER_CONFIGS,
    READ_GROUP,
    Operation,
    Permission,
    Resource,
)
from ottla.security import words
from ottla.security.words import BadWords


@pytest.mark.parametrize(
    ("text", "meant"),
    [("alice", "User:alice"), ("User:alice", "User:alice"), ("Group:staff", "Group:staff"), ("*", "User:*")],
)
def test_a_name_without_a_type_is_a_user(text: str, meant: str) -> None:
    assert words.principal(text) == meant


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("topic:orders", (2, "orders", 3)),
        ("Topic:orders.*", (2, "orders.", 4)),
        ("group:*", (3, "*", 3)),
        ("group:orders\\*", (3, "orders*", 3)),
        ("cluster", (4, "kafka-cluster", 3)),
        ("cluster:kafka-cluster", (4, "kafka-cluster", 3)),
        ("transactional_id:a:b", (5, "a:b", 3)),
        ("delegation-token:x", (6, "x", 3)),
        ("user:User:alice", (7, "User:alice", 3)),
    ],
)
def test_a_resource_is_a_type_and_a_name_and_a_star_at_its_end_a_prefix(text: str, named: tuple[int, str, int]) -> None:
    assert words.resource(text) == named
    assert words.resource(str(words.resource(text))) == words.resource(text)


@pytest.mark.parametrize(
    ("who", "about", "name", "command"),
    [
        ("User:alice", READ_GROUP, "g", "ottla acls allow alice read group:g --execute"),
        ("User:a:b", READ_GROUP, "g", "ottla acls allow User:a:b read group:g --execute"),
        ("User:alice", READ_GROUP, "it's", """ottla acls allow alice read 'group:it'"'"'s' --execute"""),
        ("User:alice", DESCRIBE_CLUSTER, "", "ottla acls allow alice describe cluster --execute"),
        ("User:alice", DESCRIBE_CLUSTER_CONFIGS, "", "ottla acls allow alice describe-configs cluster --execute"),
        ("User:alice", READ_GROUP, "orders*", "ottla acls allow alice read 'group:orders\\*' --execute"),
        ("User:alice", READ_GROUP, "*", None),
        ("User:alice", READ_GROUP, "", None),
        ("User:alice:", READ_GROUP, "g", None),
        ("User:*", READ_GROUP, "g", None),
    ],
)
def test_the_command_that_allows_something_allows_that_alone(
    who: str, about: Permission, name: str, command: str | None
) -> None:
    assert words.granting(who, about, name) == command
    if command is not None:
        _, _, _, user, what, on, _ = shlex.split(command)
        named = words.resource(on)
        assert (words.principal(user), words.operation(what, named.resource)) == (who, about.operation)
        assert (named.name, named.pattern) == (name or "kafka-cluster", Pattern.LITERAL)


@pytest.mark.parametrize("text", ["orders", "topic:", "topic", "cluster:other", "queue:x", ""])
def test_what_is_no_resource_is_told_what_is(text: str) -> None:
    with pytest.raises(BadWords, match="is no resource: topic:NAME"):
        words.resource(text)


def test_a_star_that_is_a_whole_name_is_no_single_resource() -> None:
    with pytest.raises(BadWords, match="cannot be told from all that there is"):
        words.resource(r"group:\*")


def test_an_operation_fits_its_resource_or_is_refused() -> None:
    assert words.operation("Describe-Configs", Resource.TOPIC) is Operation.DESCRIBE_CONFIGS
    with pytest.raises(BadWords, match="'write' is no operation on a group: all, read, delete"):
        words.operation("write", Resource.GROUP)


def test_entries_of_an_activity() -> None:
    wanted = words.wishes("consume", ["orders", "pay*"], group="g")
    allow = PermissionType.ALLOW
    assert words.acls("User:a", wanted, allow, "10.0.0.1") == [
        Acl(2, "orders", 3, "User:a", "10.0.0.1", Operation.READ, allow),
        Acl(2, "pay", 4, "User:a", "10.0.0.1", Operation.READ, allow),
        Acl(3, "g", 3, "User:a", "10.0.0.1", Operation.READ, allow),
    ]
    assert words.sentence(words.acls("User:a", wanted, PermissionType.DENY, "10.0.0.1")[1]) == (
        "User:a may not READ topic:pay* from 10.0.0.1"
    )


@pytest.mark.parametrize(
    ("what", "on", "why"),
    [
        ("fly", ["topic:x"], "neither an activity"),
        ("produce", [], "which topics"),
        ("write", [], "on what"),
        ("consume", ["x"], "--group"),
        ("transact", ["x"], "--transactional-id"),
        ("stream", ["x"], "--group"),
    ],
)
def test_what_is_missing_is_said(what: str, on: list[str], why: str) -> None:
    with pytest.raises(BadWords, match=why):
        words.wishes(what, on)


def test_a_phrase_names_what_is_wanted_its_group_and_its_host() -> None:
    assert words.phrase("consume orders pay* group g from ::1") == (
        words.wishes("consume", ["orders", "pay*"], group="g"),
        "0:0:0:0:0:0:0:1",
    )
    assert words.phrase("transact orders transactional-id t") == (
        words.wishes("transact", ["orders"], transactional_id="t"),
        "*",
    )
    for text in ("", "consume orders group", "fly topic:x"):
        with pytest.raises(BadWords):
            words.phrase(text)


def test_expectations_are_lines_of_words() -> None:
    text = "# none\n\nalice may write topic:orders\nbob may not alter cluster from 10.0.0.1 # never\n"
    write = Permission(Operation.WRITE, Resource.TOPIC)
    assert words.expectations(text) == [
        words.Expectation(3, "User:alice", True, write, "orders", "*"),
        words.Expectation(
            4, "User:bob", False, Permission(Operation.ALTER, Resource.CLUSTER), "kafka-cluster", "10.0.0.1"
        ),
    ]


@pytest.mark.parametrize(
    "line",
    ["alice write topic:x", "alice may write topic:x*", "alice may write topic:x at home", "alice may write topic:*"],
)
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(BadWords, match="line 1: "):
        words.expectations(line)
