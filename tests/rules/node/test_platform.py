"""The platform's ports: taken where its services can reach the node, and refused with a reason where they cannot."""

import asyncio
from pathlib import Path

import pytest

from ottla.model.properties import Listener, Settings
from ottla.node.platform import Platform, Work
from ottla.node.services import CannotStart, Ending


async def started(data: Path, protocol: str, **given: str) -> tuple[list[str], str]:
    """The services that have a port, and what is missing."""
    settings = Settings.defaults(str(data), **{"registry.listeners": "http://127.0.0.1:0", **given})
    platform = Platform(settings, [Listener("CLIENTS", protocol, "127.0.0.1", 9092)])
    await platform.start()
    health = await platform.health()
    found = list(platform.addresses), health.reasons.get("platform_listeners", "")
    await platform.stop(Ending())
    return found


def test_a_registry_takes_its_port_where_it_can_reach_the_node(tmp_path: Path) -> None:
    assert asyncio.run(started(tmp_path, "PLAINTEXT")) == (["registry"], "")


def test_a_registry_that_is_not_told_how_to_log_in_is_missed_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    services, missing = asyncio.run(started(tmp_path, "SASL_SSL"))
    assert services == []
    assert missing.startswith("no registry: it would speak PLAINTEXT to this node, whose listeners are SASL_SSL; ")
    assert "registry.kafkastore.security.protocol" in missing


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"registry.kafkastore.security.protocl": "SASL_SSL"}, r"did you mean security\.protocol"),
        ({"registry.kafkastore.security.protocol": "SASL"}, r"'SASL' is none of"),
        (
            {
                "registry.kafkastore.security.protocol": "SASL_PLAINTEXT",
                "registry.kafkastore.sasl.mechanism": "PLAIN",
                "registry.kafkastore.sasl.jaas.config": "no.such.Module required password=secret;",
            },
            r"sasl\.jaas\.config",
        ),
    ],
)
def test_how_it_logs_in_is_looked_at_when_the_node_starts(tmp_path: Path, given: dict[str, str], said: str) -> None:
    with pytest.raises(CannotStart, match=said) as caught:
        asyncio.run(started(tmp_path, "SASL_PLAINTEXT", **given))
    assert "secret" not in str(caught.value)


def test_what_the_process_is_told_is_shown_to_nobody() -> None:
    assert "hunter2" not in repr(
        Work({"registry": "127.0.0.1:9092"}, (), {"registry.kafkastore.sasl.jaas.config": "hunter2"})
    )
