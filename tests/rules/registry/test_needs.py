"""What each route of the registry needs, and which topic a subject is as."""

import pytest

from ottla.http.routes import Route
from ottla.model.permissions import ALTER_CLUSTER_CONFIGS, ALTER_TOPIC_CONFIGS, WRITE_TOPIC, Permission
from ottla.registry.api.application import routes
from ottla.registry.api.needs import FREE, NEEDS
from ottla.registry.api.server import Identity
from ottla.registry.doors.subject_rights import cluster_instead, topic_of
from tests.support.local_registry import LocalRegistry


def test_every_route_about_schemas_either_needs_something_or_is_known_to_need_nothing() -> None:
    found: list[Route] = [
        each
        for each in routes(LocalRegistry().desk, Identity("", ""))
        if each.path.startswith(("/subjects", "/schemas", "/config", "/mode", "/contexts", "/compatibility"))
    ]
    assert sorted((each.method, each.path) for each in found) == sorted([*NEEDS, *FREE])
    assert [each.needs for each in found] == [NEEDS.get((each.method, each.path)) for each in found]
    assert not set(NEEDS) & set(FREE)


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-value", "orders"),
        ("orders-key", "orders"),
        ("a-value-key", "a-value"),
        ("com.acme.Order", "com.acme.Order"),
        (":.ctx:orders-value", "orders"),
        ("-value", "-value"),
        (":.ctx:", ""),
        ("", ""),
    ],
)
def test_a_subject_is_as_its_topic_in_any_context(subject: str, topic: str) -> None:
    assert topic_of(subject) == topic


@pytest.mark.parametrize(
    ("permission", "subject", "asked"),
    [
        (WRITE_TOPIC, "orders-value", (WRITE_TOPIC, "orders")),
        (ALTER_TOPIC_CONFIGS, ":.ctx:", (ALTER_CLUSTER_CONFIGS, "kafka-cluster")),
        (ALTER_CLUSTER_CONFIGS, "", (ALTER_CLUSTER_CONFIGS, "kafka-cluster")),
    ],
)
def test_what_is_about_more_than_one_subject_is_about_the_cluster(
    permission: Permission, subject: str, asked: tuple[Permission, str]
) -> None:
    assert cluster_instead(permission, subject) == asked
