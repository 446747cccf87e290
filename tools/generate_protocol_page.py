"""Writes docs/PROTOCOL.md from the table of APIs. With --check it only says whether the page is up to date."""

import sys
from collections.abc import Iterator
from pathlib import Path

from ottla.model.permissions import Permission, Resource
from ottla.protocol.apis import API, Api, Asks, Decider, ListenerType, Needs, OfCluster, entrances

PAGE = Path(__file__).parents[1] / "docs" / "PROTOCOL.md"

INTRODUCTION = """\
# Protocol

<!-- Written by tools/generate_protocol_page.py from src/ottla/protocol/apis.py; change the table, not this page. -->

What a node answers, and at which versions: those of Apache Kafka 4.3. The head of each file in
`src/ottla/broker/handlers` tells what each version changed.

**Needs** is what an authorizer is asked. Permissions on the *cluster* alone are asked once, for the whole request:
any of those named is enough. Others are asked for each topic, group or transactional id in it, so that a part of it can
be refused, or left out where nobody is to learn that it exists.

**Decided by**: the *controller* answers with records of the metadata log, the *quorum* by what its members know;
otherwise the asked node knows. A → marks what a broker passes on for its clients, in an Envelope (KIP-590).
"""

LISTENERS = {
    ListenerType.BROKER: ("Brokers", "Listeners of brokers, for clients and other brokers."),
    ListenerType.CONTROLLER: (
        "Controllers",
        "Listeners of controllers, for brokers, other controllers and tools (`--bootstrap-controller`).",
    ),
}

UNSERVED = {
    (71, 72): "client metrics (KIP-714)",
    (76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92): "share groups (KIP-932)",
    (88, 89): "streams groups (KIP-1071)",
}
"""What the APIs are for that Kafka has and this version has not."""

NAMES = {
    Resource.TOPIC: "topic",
    Resource.GROUP: "group",
    Resource.TRANSACTIONAL_ID: "transactional id",
    Resource.CLUSTER: "cluster",
    Resource.DELEGATION_TOKEN: "delegation token",
    Resource.USER: "user",
}


def page() -> str:
    chapters = "".join(f"\n## {title}\n\n{text}\n\n{_table(kind)}" for kind, (title, text) in LISTENERS.items())
    return f"{INTRODUCTION}{chapters}\n## Not served\n\n{''.join(_unserved())}"


def _table(kind: ListenerType) -> str:
    rows = [["Key", "API", "Versions", "Needs", "Decided by"], ["---"] * 5]
    for entrance in entrances(kind):
        low, high = entrance.api.min_version, entrance.max_version
        versions = str(low) if low == high else f"{low}–{high}"
        rows.append(
            [str(entrance.api.key), entrance.api.name, versions, _needs(entrance.needs), _decider(entrance.api, kind)]
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _needs(needs: Needs) -> str:
    if isinstance(needs, OfCluster):
        return " or ".join(_permission(permission) for permission in needs.any_of)
    return (
        ", ".join(_permission(permission) for permission in needs.permissions) if isinstance(needs, Asks) else "nothing"
    )


def _permission(permission: Permission) -> str:
    return f"{permission.operation.name} {NAMES[permission.resource]}"


def _decider(api: Api, kind: ListenerType) -> str:
    assert api.served is not None
    words = {Decider.CONTROLLER: "controller", Decider.QUORUM: "quorum", None: ""}
    return ("→ " if api.served.forwarded and kind is ListenerType.BROKER else "") + words[api.served.decider]


def _unserved() -> Iterator[str]:
    missing = sorted(key for key, api in API.items() if api.served is None)
    assert missing == sorted(key for keys in UNSERVED for key in keys), "the reasons are not those of what is missing"
    yield "| Keys | APIs | What for |\n| --- | --- | --- |\n"
    for keys, reason in UNSERVED.items():
        names = ", ".join(API[key].name for key in keys)
        yield f"| {', '.join(map(str, keys))} | {names} | {reason} |\n"


def main() -> int:
    text = page()
    if "--check" not in sys.argv:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is out of date: run python {Path(__file__).name}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
