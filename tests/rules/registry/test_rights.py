"""Who may do what with a subject: Kafka's ACLs on its topic."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest

from ottla.http.auth import Basic, Caller, credentials
from ottla.http.call import Call
from ottla.model.acls import WILDCARD, Acl, Pattern, PermissionType
from ottla.model.ids import Uuid
from ottla.model.permissions import CLUSTER_NAME, Operation, Resource
from ottla.registry.api.application import routes
from ottla.registry.api.rights import topic_of
from ottla.registry.api.server import Identity
from ottla.security.acls import AclIndex, Rules
from tests.support.local_registry import LocalRegistry
from tests.support.toy_language import toy

A, B, C = toy("a"), toy("a", "b?"), toy("a", "c?")
OPEN_TO_ALL = {"/", "/v1/metadata/id", "/v1/metadata/version", "/v1/metadata/deployment", "/schemas/types",
               "/openapi.json"}  # fmt: skip
NOTHING_THERE = ("/associations", "/dek-registry/")
FILTERED = {"/subjects", "/schemas", "/contexts"}


class Believing:
    """Whoever says a name is believed."""

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        said = credentials(headers)
        return Caller(f"User:{said.user}" if isinstance(said, Basic) else "User:boss", "10.0.0.1")

    def may(self, caller: Caller, need: object, call: Call) -> bool:
        return True


def rules(*entries: tuple[str, Operation, Resource, str]) -> Rules:
    index = AclIndex()
    for number, (user, operation, resource, name) in enumerate(entries):
        pattern = Pattern.PREFIXED if name.endswith("-") else Pattern.LITERAL
        acl = Acl(resource, name, pattern, f"User:{user}", WILDCARD, operation, PermissionType.ALLOW)
        index.add(Uuid(number.to_bytes(16)), acl)
    return Rules(index, frozenset({"User:boss"}))


TOPIC, CLUSTER = Resource.TOPIC, Resource.CLUSTER
RULES = rules(
    ("reader", Operation.READ, TOPIC, "orders"),
    ("writer", Operation.WRITE, TOPIC, "orders"),
    ("keeper", Operation.DELETE, TOPIC, "orders"),
    ("clerk", Operation.ALTER_CONFIGS, TOPIC, "orders"),
    ("chief", Operation.ALTER_CONFIGS, CLUSTER, CLUSTER_NAME),
    ("guest", Operation.DESCRIBE, TOPIC, "com.example-"),
)


class Scene:
    """`orders-value` has two versions; its first schema is also that of `pay-value`, its second that of `:.eu:own`."""

    def __init__(self) -> None:
        self.registry = LocalRegistry(rules=RULES, doorkeeper=Believing())

    def ask(self, user: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        said = "Basic " + base64.b64encode(f"{user}:x".encode()).decode()
        return asyncio.run(self.registry.ask(method, path, body, authorization=said))

    def status(self, user: str, method: str, path: str, body: Any = None) -> int:
        return self.ask(user, method, path, body)[0]


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    for subject, text in (("orders-value", A), ("orders-value", B), ("pay-value", A), ("%3A.eu%3Aown", B)):
        assert made.status("boss", "POST", f"/subjects/{subject}/versions", {"schema": text}) == 200
    return made


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-value", "orders"),
        ("orders-key", "orders"),
        (":.eu:orders-value", "orders"),
        ("com.example.Order", "com.example.Order"),
        ("orders-com.example.Order", "orders-com.example.Order"),
        ("-key", "-key"),
        (":.eu:", ""),
        ("", ""),
    ],
)
def test_a_subject_is_of_the_topic_that_its_name_begins_with(subject: str, topic: str) -> None:
    assert topic_of(subject) == topic


@pytest.mark.parametrize("user", ["reader", "writer", "keeper"])
def test_who_may_do_anything_with_the_records_of_a_topic_sees_its_schemas(scene: Scene, user: str) -> None:
    for path in ("/subjects/orders-value/versions", "/subjects/orders-value/versions/1/referencedby", "/schemas/ids/1"):
        assert scene.status(user, "GET", path) == 200
    assert scene.status(user, "POST", "/subjects/orders-value", {"schema": A}) == 200
    assert scene.status(user, "POST", "/compatibility/subjects/orders-value/versions", {"schema": C}) == 200
    assert scene.status(user, "GET", "/subjects/pay-value/versions") == 403


def test_write_registers_and_delete_deletes(scene: Scene) -> None:
    register = ("POST", "/subjects/orders-value/versions", {"schema": C})
    delete = ("DELETE", "/subjects/orders-value/versions/1")
    assert [scene.status(user, *register) for user in ("reader", "keeper", "clerk", "chief")] == [403] * 4
    assert scene.status("writer", *register) == 200
    assert [scene.status(user, *delete) for user in ("reader", "writer", "clerk", "chief")] == [403] * 4
    assert scene.status("keeper", *delete) == 200


def test_config_and_mode_are_configs_of_the_topic_or_of_the_cluster(scene: Scene) -> None:
    level, mode = {"compatibility": "FULL"}, {"mode": "READONLY"}
    for path, body in (("/config/orders-value", level), ("/mode/orders-value", mode)):
        assert [scene.status(user, "PUT", path, body) for user in ("writer", "chief", "clerk")] == [403, 403, 200]
        assert [scene.status(user, "GET", path) for user in ("writer", "clerk")] == [403, 200]
    for path, body in (("/config", level), ("/config/%3A.eu%3A", level), ("/mode", mode)):
        assert [scene.status(user, "PUT", path, body) for user in ("clerk", "chief")] == [403, 200]
    assert scene.status("clerk", "DELETE", "/contexts/.us") == 403


def test_lists_leave_out_what_the_caller_does_not_see(scene: Scene) -> None:
    assert scene.ask("reader", "GET", "/subjects") == (200, ["orders-value"])
    assert scene.ask("guest", "GET", "/subjects") == (200, [])
    assert scene.ask("boss", "GET", "/subjects")[1] == [":.eu:own", "orders-value", "pay-value"]
    assert [each["subject"] for each in scene.ask("reader", "GET", "/schemas")[1]] == ["orders-value"] * 2
    assert scene.ask("reader", "GET", "/contexts") == (200, ["."])
    assert scene.ask("boss", "GET", "/contexts") == (200, [".", ".eu"])
    assert scene.ask("reader", "GET", "/schemas/ids/1/subjects") == (200, ["orders-value"])


def test_a_schema_by_its_id_is_shown_as_that_of_a_subject_the_caller_sees(scene: Scene) -> None:
    assert scene.ask("reader", "GET", "/schemas/ids/1?subject=pay-value")[1]["subject"] == "orders-value"
    status, told = scene.ask("guest", "GET", "/schemas/ids/1")
    assert (status, told["error_code"]) == (403, 40301)
    guid = scene.ask("boss", "GET", "/schemas/ids/1")[1]["guid"]
    assert [scene.status(user, "GET", f"/schemas/guids/{guid}") for user in ("reader", "guest")] == [200, 403]


def test_an_alias_opens_no_door_to_what_it_stands_for(scene: Scene) -> None:
    assert scene.status("boss", "PUT", "/config/com.example-x", {"alias": "pay-value"}) == 200
    assert scene.status("guest", "GET", "/subjects/com.example-x/versions/1") == 403


def test_who_refers_to_a_schema_must_see_it(scene: Scene) -> None:
    body = {"schema": '{"fields":{"a":"int"},"uses":["p"]}'}
    secret = {**body, "references": [{"name": "p", "subject": "pay-value", "version": 1}]}
    own = {**body, "references": [{"name": "p", "subject": "orders-value", "version": 1}]}
    path = "/subjects/orders-key/versions"
    assert [scene.status("writer", "POST", path, each) for each in (secret, own)] == [403, 200]
    assert scene.status("writer", "POST", "/subjects/orders-key", secret) == 403


def test_a_refusal_names_what_is_missing(scene: Scene) -> None:
    assert scene.ask("reader", "DELETE", "/subjects/orders-value") == (
        403,
        {"error_code": 40301, "message": "User:reader may not do this: it needs DELETE on Topic orders."},
    )
    assert scene.ask("reader", "PUT", "/config", {"compatibility": "FULL"}) == (
        403,
        {"error_code": 40301, "message": "User:reader may not do this: it needs ALTER_CONFIGS on the cluster."},
    )


def test_no_route_forgets_to_ask(scene: Scene) -> None:
    """A new one has to be refused to who has no right, or be named above."""
    guid = scene.ask("boss", "GET", "/schemas/ids/1")[1]["guid"]
    parts = {"subject": "pay-value", "version": "1", "id": "1", "guid": guid, "context": ".eu"}
    body = {"schema": A, "compatibility": "FULL", "mode": "READONLY"}
    wrong = [
        f"{route.method} {route.path}"
        for route in routes(scene.registry.desk, Identity("k", "sr"))
        if route.path not in OPEN_TO_ALL | FILTERED and not route.path.startswith(NOTHING_THERE)
        if (scene.status("nobody", route.method, route.path.format(**parts), body if route.body else None) != 403)
    ]
    assert wrong == [
        "GET /schemas/ids/{id}/subjects",
        "GET /schemas/ids/{id}/versions",
        "GET /schemas/guids/{guid}/ids",
    ]
    assert scene.ask("nobody", "GET", "/schemas/ids/1/subjects") == (200, [])
    assert scene.ask("nobody", "GET", "/schemas/ids/1/versions") == (200, [])


def test_nobody_gets_anything_before_the_acls_are_known() -> None:
    registry = LocalRegistry(rules=None)
    assert asyncio.run(registry.ask("GET", "/subjects"))[0] == 503
    assert asyncio.run(registry.ask("GET", "/"))[0] == 200
