"""Leaders elected because somebody asked, because it is time, or because a setting changed."""

import pytest

from ottla.metadata.image import RECOVERED, RECOVERING
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, Topic, features

PREFERRED, UNCLEAN = 0, 1
FIVE_MINUTES = 300_000

Request = messages.ElectLeadersRequest


def elect(scene: Scene, kind: int, *partitions: tuple[str, int]) -> dict[tuple[str, int], int]:
    wanted = [Request.TopicPartitions(topic=topic, partitions=[index]) for topic, index in partitions]
    return errors_of(scene, Request(election_type=kind, topic_partitions=wanted))


def errors_of(scene: Scene, request: "Request") -> dict[tuple[str, int], int]:
    reply = scene.play(request).reply
    assert isinstance(reply, messages.ElectLeadersResponse)
    assert reply.error_code == Errors.NONE
    return {(t.topic, p.partition_id): p.error_code for t in reply.replica_election_results for p in t.partition_result}


def back_in_sync(scene: Scene) -> Scene:
    """2 was away and is in sync again, but 3 leads."""
    scene.fence(2)
    scene.unfence(2)
    scene.has_isr(3, 1, 2)
    assert scene.partition().leader == 3
    return scene


def imbalanced(**settings: str) -> Scene:
    return back_in_sync(Scene(None, **settings).with_brokers(1, 2, 3).with_partition(2, 3, 1))


def test_the_preferred_replica_leads_again_when_asked_for() -> None:
    scene = imbalanced()
    assert elect(scene, PREFERRED, ("t", 0)) == {("t", 0): Errors.NONE}
    assert (scene.partition().leader, scene.partition().leader_epoch) == (2, 2)
    assert elect(scene, PREFERRED, ("t", 0)) == {("t", 0): Errors.ELECTION_NOT_NEEDED}


def test_a_preferred_replica_that_is_not_in_sync_is_not_available() -> None:
    scene = imbalanced()
    scene.has_isr(3, 1)
    assert elect(scene, PREFERRED, ("t", 0)) == {("t", 0): Errors.PREFERRED_LEADER_NOT_AVAILABLE}
    assert scene.partition().leader == 3


def test_unknown_partitions_are_named() -> None:
    scene = imbalanced()
    assert elect(scene, PREFERRED, ("t", 7), ("nobody", 0)) == {
        ("t", 7): Errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("nobody", 0): Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_asked_about_everything_only_what_was_tried_is_answered() -> None:
    scene = imbalanced().with_partition(1, 2, 3, topic="fine")
    assert errors_of(scene, Request(election_type=PREFERRED, topic_partitions=None)) == {("t", 0): Errors.NONE}


def test_an_election_nobody_knows_is_refused() -> None:
    reply = imbalanced().decide(Request(election_type=7, topic_partitions=None)).reply
    assert reply == messages.ElectLeadersResponse(error_code=Errors.INVALID_REQUEST)


# Unclean


def lost(**settings: str) -> Scene:
    """3 missed what 2 acknowledged alone, and 2 is gone."""
    scene = Scene(records=features(elr=0), **settings).with_brokers(1, 2, 3).with_partition(2, 3)
    scene.fence(3, 2)
    scene.unfence(3)
    return scene


def test_an_unclean_election_can_be_asked_for_whatever_the_topic_says() -> None:
    scene = lost()
    assert scene.partition().leader == -1
    assert elect(scene, UNCLEAN, ("t", 0)) == {("t", 0): Errors.NONE}
    after = scene.partition()
    assert (after.leader, after.isr, after.leader_recovery_state) == (3, (3,), RECOVERING)
    assert elect(scene, UNCLEAN, ("t", 0)) == {("t", 0): Errors.ELECTION_NOT_NEEDED}


def test_with_nobody_alive_an_unclean_election_fails_too() -> None:
    scene = lost()
    scene.fence(3)
    assert elect(scene, UNCLEAN, ("t", 0)) == {("t", 0): Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_an_unclean_election_that_finds_an_eligible_replica_is_clean() -> None:
    scene = Scene().with_brokers(1, 2, 3).with_partition(2, 3)
    scene.fence(3, 2)
    scene.unfence(2)
    after = scene.partition()
    assert (after.leader, after.leader_recovery_state) == (2, RECOVERED)


@pytest.mark.parametrize("elr", [0, 1])
def test_unclean_election_goes_for_any_live_replica_only_after_isr_and_elr(elr: int) -> None:
    scene = Scene(records=features(elr=elr), min_insync_replicas="2").with_brokers(1, 2, 3)
    scene.with_partition(2, 3, 1, unclean_leader_election_enable="true")
    scene.fence(1, 3)
    scene.unfence(1)
    scene.fence(2)
    after = scene.partition()
    # With ELR 1 is not eligible, it left when two were still in sync, and 3 and 2 are dead.
    assert (after.leader, after.isr, after.elr, after.leader_recovery_state) == (1, (1,), (), RECOVERING)


def test_switching_unclean_election_on_elects_without_waiting_for_the_check() -> None:
    scene = lost()
    scene.controller.activated(scene.now)
    alter = messages.IncrementalAlterConfigsRequest
    change = alter.AlterableConfig(name="unclean.leader.election.enable", config_operation=0, value="true")
    scene.play(alter(resources=[alter.AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])]))
    at = scene.controller.next_tick(Millis(1))
    assert at is not None
    assert at <= 1
    scene.tick(1)
    assert (scene.partition().leader, scene.partition().leader_recovery_state) == (3, RECOVERING)


def test_partitions_without_a_leader_are_looked_at_every_five_minutes_and_left_alone_if_their_topic_says_so() -> None:
    scene = lost()
    scene.controller.activated(Millis(0))
    scene.beat(3)
    scene.now = Millis(FIVE_MINUTES - 1)
    scene.beat(3)
    assert scene.controller.next_tick(scene.now) == FIVE_MINUTES
    assert scene.tick(FIVE_MINUTES).records == ()
    scene.beat(3)
    assert scene.partition().leader == -1
    assert scene.controller.next_tick(scene.now) == FIVE_MINUTES + 9000


# Balancing


def test_leaders_go_back_to_the_preferred_replicas_when_the_interval_has_passed() -> None:
    scene = imbalanced()
    scene.controller.activated(Millis(0))
    scene.now = Millis(FIVE_MINUTES - 1)
    scene.beat(2)
    scene.beat(3)
    assert scene.tick(FIVE_MINUTES - 1).records == ()
    assert scene.controller.next_tick(scene.now) == FIVE_MINUTES
    scene.tick(FIVE_MINUTES)
    assert (scene.partition().leader, scene.partition().leader_epoch) == (2, 2)
    assert scene.controller.next_tick(scene.now) == FIVE_MINUTES - 1 + 9000


def test_balancing_can_be_switched_off() -> None:
    scene = imbalanced(auto_leader_rebalance_enable="false")
    scene.controller.activated(Millis(0))
    scene.now = Millis(FIVE_MINUTES)
    scene.beat(2)
    scene.beat(3)
    assert scene.tick(FIVE_MINUTES).records == ()


def test_balancing_moves_a_thousand_leaders_at_a_time() -> None:
    scene = Scene().with_brokers(1, 2)
    scene.create(Topic(name="t", num_partitions=2200, replication_factor=2))
    scene.fence(2)
    scene.unfence(2)
    topic = scene.image.topics["t"]
    scene.replay(
        [
            messages.PartitionChangeRecord(partition_id=index, topic_id=topic.id, isr=[1, 2])
            for index in topic.partitions
        ]
    )
    scene.controller.activated(Millis(0))
    scene.now = Millis(FIVE_MINUTES)
    scene.beat(2)
    moved = [len(scene.tick(FIVE_MINUTES).records) for _ in range(3)]
    assert moved == [1000, 100, 0]
    assert all(p.leader == p.replicas[0] for p in scene.image.topics["t"].partitions.values())


def test_a_deleted_topic_is_not_balanced() -> None:
    scene = imbalanced()
    scene.controller.activated(Millis(0))
    scene.play(messages.DeleteTopicsRequest(topic_names=["t"]))
    scene.now = Millis(FIVE_MINUTES)
    scene.beat(2)
    scene.beat(3)
    assert scene.tick(FIVE_MINUTES).records == ()
