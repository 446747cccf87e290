"""`ottla acls` against a node: what a person types, and what they see."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.app import run
from ottla.testing import Cluster
from tests.wire.test_cli import Shell

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    """Its users cannot log in; the one who asks is a super user."""
    with Cluster(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS;User:boss") as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture
def ottla(
    secured: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", secured)
    shell = Shell(capsysbinary, tmp_path)
    yield shell
    for user in ("alice", "bob", "*", "Group:staff"):
        run(("acls", "remove", user, "--execute"))


def test_nothing_changes_before_it_is_to_be_executed(ottla: Shell) -> None:
    words = ("acls", "allow", "alice", "consume", "orders", "--group", "billing")
    shown = "+ User:alice may READ topic:orders\n+ User:alice may READ group:billing\n"
    assert ottla(*words) == shown
    assert ottla.json("acls", "list") == []
    assert ottla(*words, "--execute") == shown
    assert ottla(*words, "--execute") == (
        "  User:alice may READ topic:orders  (is there already)\n"
        "  User:alice may READ group:billing  (is there already)\n"
    )
    common = {"principal": "User:alice", "host": "*", "operation": "READ", "permission": "ALLOW"}
    assert ottla.json("acls", "of", "alice") == [{"resource": on, **common} for on in ("topic:orders", "group:billing")]


def test_an_activity_is_a_few_operations(ottla: Shell) -> None:
    assert ottla("acls", "allow", "alice", "produce", "a.*", "b") == (
        "+ User:alice may WRITE topic:a.*\n+ User:alice may WRITE topic:b\n"
    )
    assert ottla("acls", "allow", "alice", "transact", "a", "--transactional-id", "t-*", "--group", "g") == (
        "+ User:alice may WRITE topic:a\n+ User:alice may WRITE transactional-id:t-*\n+ User:alice may READ group:g\n"
    )
    assert ottla("acls", "allow", "alice", "stream", "in", "--group", "app") == (
        "+ User:alice may READ topic:in\n"
        "+ User:alice may WRITE topic:in\n"
        "+ User:alice may READ group:app\n"
        "+ User:alice may ALL topic:app*\n"
        "+ User:alice may WRITE transactional-id:app*\n"
    )


def test_what_cannot_be_meant_is_said(ottla: Shell) -> None:
    assert "'fly' is neither an activity" in ottla("acls", "allow", "alice", "fly", "topic:x", fails=2)
    assert "'orders' is no resource: topic:NAME" in ottla("acls", "allow", "alice", "write", "orders", fails=2)
    assert "'write' is no operation on a group" in ottla("acls", "allow", "alice", "write", "group:g", fails=2)
    assert "name it (--group)" in ottla("acls", "allow", "alice", "consume", "orders", fails=2)


def test_why_names_the_rule_and_what_to_do(ottla: Shell) -> None:
    # As Kafka's, the brokers tell only that there are super users.
    assert "super.users" in ottla("acls", "why", "alice", "write", "topic:orders", fails=1)
    ottla("acls", "allow", "alice", "produce", "ord*", "--execute")
    assert ottla("acls", "why", "alice", "describe", "topic:orders") == (
        "User:alice may DESCRIBE topic:orders: an entry says that User:alice may WRITE topic:ord*\n"
    )
    ottla("acls", "deny", "*", "write", "topic:orders", "--execute")
    assert ottla.json_failing("acls", "why", "alice", "write", "topic:orders") == {
        "principal": "User:alice",
        "operation": "WRITE",
        "resource": "topic:orders",
        "allowed": False,
        "rule": "MatchingAcl",
        "acl": "User:* may not WRITE topic:orders",
        "near": ["User:alice may WRITE topic:ord*"],
        "do": "take that away with: ottla acls remove 'User:*' write topic:orders --execute",
    }
    assert ottla.json_failing("acls", "why", "bob", "read", "topic:orders")["do"] == (
        "allow it with: ottla acls allow User:bob read topic:orders --execute"
    )


def test_who_may_do_what_with_a_thing(ottla: Shell) -> None:
    ottla("acls", "allow", "alice", "produce", "orders", "--execute")
    ottla("acls", "allow", "Group:staff", "all", "topic:*", "--execute")
    ottla("acls", "deny", "bob", "read", "topic:orders", "--host", "::1", "--execute")
    assert [(each["principal"], each["host"], each["may"]) for each in ottla.json("acls", "who", "topic:orders")] == [
        ("Group:staff", "*", "ALL"),
        ("User:alice", "*", "WRITE DESCRIBE"),
    ]
    assert [each["principal"] for each in ottla.json("acls", "who", "topic:orders", "read")] == [
        "Group:staff",
    ]
    # The address is written as Java does, or it would never count.
    assert [each["host"] for each in ottla.json("acls", "of", "bob")] == ["0:0:0:0:0:0:0:1"]


def test_entries_are_taken_away_one_by_one_or_all_of_a_user(ottla: Shell) -> None:
    ottla("acls", "allow", "alice", "consume", "orders", "--group", "g", "--execute")
    ottla("acls", "deny", "alice", "read", "topic:orders", "--host", "10.0.0.1", "--execute")
    assert ottla("acls", "remove", "alice", "read", "topic:orders") == (
        "- User:alice may READ topic:orders\n- User:alice may not READ topic:orders from 10.0.0.1\n"
    )
    ottla("acls", "remove", "alice", "read", "topic:orders", "--host", "10.0.0.1", "--execute")
    assert len(ottla.json("acls", "list", "--user", "alice")) == 2
    ottla("acls", "remove", "alice", "--execute")
    assert ottla.json("acls", "list") == []
    assert "no such entry" in ottla("acls", "remove", "alice", "--execute", fails=1)


def test_expectations_are_held_against_the_cluster(ottla: Shell, tmp_path: Path) -> None:
    ottla("acls", "allow", "alice", "produce", "orders", "--execute")
    file = tmp_path / "expected"
    file.write_text("# who writes\nalice may write topic:orders\nbob may not write topic:orders  # yet\n")
    assert ottla("acls", "check", str(file)) == "2 expectations, 0 not met\n"
    file.write_text("bob may write topic:orders from 10.0.0.1\n")
    ottla("acls", "check", str(file), fails=1)
    file.write_text("bob might write topic:orders\n")
    assert "line 1: NAME may [not] OPERATION RESOURCE" in ottla("acls", "check", str(file), fails=2)


def test_a_cluster_without_an_authorizer_says_what_would_change_that(
    bootstrap: str, ottla: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as there:
        there.setenv("OTTLA_BOOTSTRAP", bootstrap)
        assert "authorizer.class.name=" in ottla("acls", "list", fails=1)
