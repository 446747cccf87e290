"""Client quotas as the controller decides them (KIP-546), and what they keep clients from changing (KIP-599)."""

import pytest

from ottla.controller.machine import CommandContext
from ottla.controller.permits import EXHAUSTED
from ottla.metadata.image import QuotaEntity
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages as m
from tests.rules.controller.scene import Scene, Topic, uuid

ALICE: QuotaEntity = (("user", "alice"),)
Alter = m.AlterClientQuotasRequest


def alter(
    *entries: tuple[dict[str, str | None], dict[str, float | None]], validate_only: bool = False
) -> m.AlterClientQuotasRequest:
    return Alter(
        entries=[
            Alter.EntryData(
                [Alter.EntityData(kind, name) for kind, name in entity.items()],
                [Alter.OpData(key, value or 0.0, value is None) for key, value in values.items()],
            )
            for entity, values in entries
        ],
        validate_only=validate_only,
    )


def record(entity: QuotaEntity, key: str, value: float | None) -> m.ClientQuotaRecord:
    parts = [m.ClientQuotaRecord.EntityData(kind, name) for kind, name in entity]
    return m.ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)


def test_only_what_changes_is_logged() -> None:
    scene = Scene().with_brokers(1)
    first = scene.decide(alter(({"user": "alice"}, {"producer_byte_rate": 10, "request_percentage": 0.5})))
    assert first.records == (record(ALICE, "producer_byte_rate", 10.0), record(ALICE, "request_percentage", 0.5))
    scene.replay(first.records)
    change = {"producer_byte_rate": 10.0, "request_percentage": None, "consumer_byte_rate": None}
    second = scene.decide(alter(({"user": "alice"}, change)))
    assert second.records == (record(ALICE, "request_percentage", None),)
    scene.replay(second.records)
    assert scene.image.client_quotas == {ALICE: {"producer_byte_rate": 10.0}}


def test_a_dry_run_says_what_would_be_and_logs_nothing() -> None:
    asked = alter(({"user": "alice"}, {"producer_byte_rate": 10}), ({"user": "alice"}, {"x": 1}), validate_only=True)
    decision = Scene().decide(asked)
    assert decision.records == ()
    assert [entry.error_code for entry in decision.reply.entries] == [Errors.INVALID_REQUEST]  # one answer, the last


def test_one_bad_entry_does_not_stop_the_others() -> None:
    decision = Scene().decide(
        alter(
            ({"user": ""}, {"producer_byte_rate": 1}),
            ({"client-id": None, "user": "alice"}, {"controller_mutation_rate": 0.1}),
        )
    )
    assert [entry.error_code for entry in decision.reply.entries] == [Errors.INVALID_REQUEST, Errors.NONE]
    entity: QuotaEntity = (("client-id", None), ("user", "alice"))
    assert decision.records == (record(entity, "controller_mutation_rate", 0.1),)


class Purse:
    """Permits for so many partitions."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, partitions: int, now: Millis) -> bool:
        if partitions > self.left:
            return False
        self.left -= partitions
        return True


def codes(scene: Scene, command: m.CreateTopicsRequest, purse: Purse, *, dry_run: bool = False) -> list[int]:
    command.validate_only = dry_run
    fresh = [uuid(number) for number in range(len(command.topics))]
    context = CommandContext(scene.now, scene.image.offset + 1, fresh_ids=fresh, permits=purse)
    decision = scene.controller.decide(command, context)
    scene.replay(decision.records)
    return [topic.error_code for topic in decision.reply.topics]


def test_topics_are_refused_one_by_one_when_nothing_is_left_and_dry_runs_count() -> None:
    scene = Scene().with_brokers(1)
    wanted = m.CreateTopicsRequest(topics=[Topic("a", 4, 1), Topic("b", 4, 1), Topic("c", 1, 1)])
    assert codes(scene, wanted, Purse(5), dry_run=True) == [0, EXHAUSTED.error, 0]
    purse = Purse(9)
    assert codes(scene, wanted, purse) == [0, 0, 0]
    assert purse.left == 0


def test_what_is_wrong_anyway_costs_nothing() -> None:
    scene = Scene().with_brokers(1)
    purse = Purse(5)
    assert codes(scene, m.CreateTopicsRequest(topics=[Topic("a/b", 5, 1)]), purse) == [Errors.INVALID_TOPIC_EXCEPTION]
    assert purse.left == 5


@pytest.mark.parametrize("left", [3, 4])
def test_deleting_a_topic_costs_its_partitions_and_more_partitions_what_is_added(left: int) -> None:
    scene = Scene().with_brokers(1)
    codes(scene, m.CreateTopicsRequest(topics=[Topic("a", 4, 1)]), Purse(4))
    expected = Errors.NONE if left == 4 else EXHAUSTED.error
    context = CommandContext(scene.now, scene.image.offset + 1, permits=Purse(left))
    more = m.CreatePartitionsRequest(topics=[m.CreatePartitionsRequest.CreatePartitionsTopic("a", 8, None)])
    assert scene.controller.decide(more, context).reply.results[0].error_code == expected
    context = CommandContext(scene.now, scene.image.offset + 1, permits=Purse(left))
    assert (
        scene.controller.decide(m.DeleteTopicsRequest(topic_names=["a"]), context).reply.responses[0].error_code
        == expected
    )
