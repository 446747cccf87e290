"""What is asked of both nodes about quotas: setting and finding them."""

from ottla.protocol import messages as m
from tests.support.conversation import Conversation, Step
from tests.support.quotas import DEFAULT, EXACT, SPECIFIED, Entity, Values, alter_request
from tests.support.wire import Wire


def quotas(wire: Wire, t: str) -> Conversation:
    yield from _altered(t)
    yield from _described(t)


def _alter(label: str, entity: Entity, values: Values, *, validate_only: bool = False) -> Step:
    return Step(f"quota: {label}", alter_request(entity, values, validate_only=validate_only), 1)


def _altered(t: str) -> Conversation:
    user: Entity = {"user": f"{t}u"}
    yield _alter("set", user, {"producer_byte_rate": 1000.0, "request_percentage": 12.5})
    yield _alter("the same", user, {"producer_byte_rate": 1000.0})
    yield _alter("pair", {"user": f"{t}u", "client-id": f"{t}c"}, {"consumer_byte_rate": 5e9})
    yield _alter("defaults", {"user": None, "client-id": None}, {"controller_mutation_rate": 0.5})
    yield _alter("default ip", {"ip": None}, {"connection_creation_rate": 1e9})
    yield _alter("ip", {"ip": "10.1.2.3"}, {"connection_creation_rate": 7})
    yield _alter("ip of six", {"ip": "fe80::1"}, {"connection_creation_rate": 7})
    yield _alter("host", {"ip": "localhost"}, {"connection_creation_rate": 1e6})
    yield _alter("dry", user, {"producer_byte_rate": None}, validate_only=True)
    yield _alter("removed", user, {"request_percentage": None, "consumer_byte_rate": None})
    yield _alter("removed, unknown", user, {"nothing": None})
    yield _alter("no entity", {}, {"producer_byte_rate": 1.0})
    yield _alter("unknown entity", {"group": "g"}, {"producer_byte_rate": 1.0})
    yield _alter("empty name", {"user": ""}, {"producer_byte_rate": 1.0})
    yield _alter("ip and user", {"ip": "10.0.0.1", "user": "u"}, {"connection_creation_rate": 1.0})
    yield _alter("bad ip", {"ip": "no such host"}, {"connection_creation_rate": 1.0})
    yield _alter("unknown key", user, {"bytes": 1.0})
    yield _alter("key of the other kind", user, {"connection_creation_rate": 1.0})
    yield _alter("of clients for an ip", {"ip": "10.0.0.1"}, {"producer_byte_rate": 1.0})
    for value in (0.0, -1.0, 1.5, 1e-9, 1.0000001, 1e19):
        for key in ("producer_byte_rate", "request_percentage", "controller_mutation_rate"):
            yield _alter(f"{key} {value}", {"client-id": f"{t}v{value}"}, {key: value})
        yield _alter(f"connections {value}", {"ip": "10.9.9.9"}, {"connection_creation_rate": value})
    kind = m.AlterClientQuotasRequest
    twice = [kind.OpData("producer_byte_rate", 1.0), kind.OpData("producer_byte_rate", 2.0)]
    yield Step("quota: twice", kind(entries=[kind.EntryData([kind.EntityData("user", f"{t}w")], twice)]), 1)


def _described(t: str) -> Conversation:
    kind = m.DescribeClientQuotasRequest

    def describe(label: str, *components: tuple[str, int, str | None], strict: bool = False) -> Step:
        parts = [kind.ComponentData(*each) for each in components]
        return Step(f"quotas: {label}", kind(components=parts, strict=strict), 1)

    yield describe("a user", ("user", EXACT, f"{t}u"))
    yield describe("a user alone", ("user", EXACT, f"{t}u"), strict=True)
    yield describe("pairs", ("user", SPECIFIED, None), ("client-id", SPECIFIED, None))
    yield describe("defaults", ("user", DEFAULT, None), ("client-id", DEFAULT, None))
    yield describe("ips", ("ip", SPECIFIED, None))
    yield describe("nothing but", strict=True)
    yield describe("nobody", ("user", EXACT, f"{t}nobody"))
    wrong: dict[str, list[tuple[str, int, str | None]]] = {
        "twice": [("user", EXACT, "a"), ("user", EXACT, "b")],
        "ip and user": [("ip", EXACT, "10.0.0.1"), ("user", EXACT, "a")],
        "no name": [("user", EXACT, None)],
        "a default with a name": [("user", DEFAULT, "a")],
        "any with a name": [("user", SPECIFIED, "a")],
        "match type 3": [("user", 3, None)],
        "no type": [("", EXACT, "a")],
        "unknown type": [("group", EXACT, "a")],
    }
    for label, components in wrong.items():
        yield describe(label, *components)


QUOTA_CONVERSATIONS = {"quotas": quotas}
