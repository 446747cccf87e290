"""A topic that Confluent's registry wrote (8.5.0-0 on Apache Kafka 4.3.1), and what that server answered from it.

It is read and written again to the byte, answered from alike, and gone on with.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ottla.http.addresses import Address
from ottla.http.limits import DEFAULT_LIMITS
from ottla.registry.api.application import application
from ottla.registry.api.desk import Desk
from ottla.registry.api.server import Identity
from ottla.registry.journal.codec import decode, encode
from ottla.registry.languages import LANGUAGES
from ottla.registry.machine.machine import Machine
from ottla.registry.runner import Runner
from ottla.registry.settings import RegistrySettings
from tests.rules.registry.scene import Scene
from tests.support.asgi import answered
from tests.support.toy_language import toy

RECORDED = json.loads((Path(__file__).parent / "registry" / "confluent_topic.json").read_text())
TOPIC = [
    (each["key"].encode(), each["value"].encode() if each["value"] is not None else None, each["timestamp"])
    for each in RECORDED["records"]
]


def replayed() -> Scene:
    scene = Scene(Machine(LANGUAGES), topic=list(TOPIC))
    for key, value, timestamp in TOPIC:
        record = decode(key, value)
        assert record is not None
        assert scene.machine.replay(record, timestamp) is None
    return scene


def test_every_record_is_written_as_it_was_read() -> None:
    again = []
    for key, value, timestamp in TOPIC:
        record = decode(key, value)
        assert record is not None
        again.append((*encode(record), timestamp))
    assert again == TOPIC


@pytest.mark.parametrize("recorded", RECORDED["answers"], ids=lambda each: each["path"])
def test_the_same_questions_are_answered_alike(recorded: dict[str, Any]) -> None:
    async def asked() -> tuple[int, Any]:
        return await answered(serving(replayed().machine), "GET", recorded["path"])

    assert asyncio.run(asked()) == (recorded["status"], recorded["body"])


def test_it_is_gone_on_with() -> None:
    scene = replayed()
    made = scene.register("new-value", '"string"')
    assert (made.id, made.version) == (100_045, 1)
    assert scene.register(":.eu:new-value", '"string"').id == 2
    fields = '{"name":"id","type":"long"},{"name":"n","type":"int","default":0}'
    more = f'{{"type":"record","name":"Order","fields":[{fields}]}}'
    assert scene.register("orders-copy-value", more).version == 2
    assert scene.restarted(compacted=True).register("newer-value", toy("b")).id == 100_047


def serving(machine: Machine) -> Any:
    """The whole API over a machine, with no cluster behind it."""
    settings = RegistrySettings.of()
    runner = Runner(None, machine, "_schemas", url="", group="", timeout_s=1)  # type: ignore[arg-type]
    desk = Desk(runner, settings, "")
    return application(desk, Identity("", ""), Address("http", "127.0.0.1", 0), DEFAULT_LIMITS)
