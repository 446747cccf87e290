"""Brokers that fall silent: by session, and by a connection that breaks."""

from ottla.controller.machine import Fenced
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, a_registration

BROKE = "its connection broke and it did not come back"
TIMED_OUT = "its session timed out"
DEAD = "its process is gone: nobody listens at its address any more"


def missing(scene: Scene) -> list[int]:
    return [broker.id for broker in scene.controller.missing()]


def fenced(scene: Scene) -> list[int]:
    return [b.id for b in scene.image.brokers.values() if b.fenced]


def test_a_broker_whose_connection_broke_is_fenced_after_the_grace() -> None:
    scene = Scene().with_brokers(1, 2, 3)
    scene.controller.disconnected(2, scene.epoch_of(2), Millis(1000))
    assert scene.controller.next_tick(Millis(1000)) == 1300
    assert scene.tick(1299).records == ()
    assert scene.tick(1300).effects == (Fenced(2, BROKE),)
    assert str(Fenced(2, BROKE)) == f"broker 2 is fenced: {BROKE}"  # what an operator reads
    assert fenced(scene) == [2]
    assert scene.controller.next_tick(Millis(1300)) == 9000  # the session of 3


def test_a_broker_that_is_back_within_the_grace_is_not_fenced() -> None:
    scene = Scene().with_brokers(1, 2)
    scene.controller.disconnected(2, scene.epoch_of(2), Millis(1000))
    scene.now = Millis(1200)
    scene.beat(2)
    assert (scene.tick(1300).records, fenced(scene)) == ((), [])


def test_a_broker_whose_process_is_gone_is_fenced_without_a_grace() -> None:
    scene = Scene().with_brokers(1, 2, 3)
    assert missing(scene) == []
    scene.controller.disconnected(2, scene.epoch_of(2), Millis(1000))
    assert missing(scene) == [2]
    scene.controller.dead(2, scene.epoch_of(2), Millis(1004))
    assert (missing(scene), scene.controller.next_tick(Millis(1004))) == ([], 1004)
    assert scene.tick(1004).effects == (Fenced(2, DEAD),)


def test_a_broker_that_came_back_before_the_news_of_its_death_lives() -> None:
    scene = Scene().with_brokers(1, 2)
    scene.controller.disconnected(2, scene.epoch_of(2), Millis(1000))
    scene.now = Millis(1001)
    scene.beat(2)
    scene.controller.dead(2, scene.epoch_of(2), Millis(1002))
    assert (scene.tick(1300).records, fenced(scene), missing(scene)) == ((), [], [])


def test_a_broker_that_answers_when_asked_after_is_waited_for_until_its_session_ends() -> None:
    scene = Scene().with_brokers(1, 2)
    scene.controller.disconnected(2, scene.epoch_of(2), Millis(1000))
    scene.controller.answered(2, scene.epoch_of(2), Millis(1200))
    assert scene.controller.next_tick(Millis(1200)) == 1500
    for now in range(1400, 9000, 200):
        scene.controller.answered(2, scene.epoch_of(2), Millis(now))
        assert scene.tick(now).records == ()
    assert scene.tick(9000).effects == (Fenced(2, TIMED_OUT),)


def test_the_death_of_a_former_life_is_no_news() -> None:
    scene = Scene().with_brokers(1, 2)
    former = scene.epoch_of(2)
    scene.controller.disconnected(2, former, Millis(10))
    scene.register(2, 1)
    scene.unfence(2)
    scene.controller.disconnected(2, scene.epoch_of(2), Millis(20))
    scene.controller.dead(2, former, Millis(21))
    assert (scene.tick(21).records, missing(scene)) == ((), [2])


def test_an_old_connection_that_ends_after_a_new_one_took_over_is_not_missed() -> None:
    scene = Scene().with_brokers(1, 2)
    epoch = scene.epoch_of(2)
    old, new = object(), object()
    scene.controller.connected(2, epoch, Millis(0), old)
    scene.controller.connected(2, epoch, Millis(100), new)
    scene.controller.disconnected(2, epoch, Millis(200), old)
    assert scene.tick(1000).records == ()
    scene.controller.disconnected(2, epoch, Millis(1000), new)
    assert scene.tick(1300).effects == (Fenced(2, BROKE),)


def test_connections_of_a_former_life_do_not_count() -> None:
    scene = Scene().with_brokers(1, 2)
    former = scene.epoch_of(2)
    scene.controller.disconnected(2, former, Millis(10))
    scene.register(2, 1)
    scene.unfence(2)
    scene.controller.disconnected(2, former, Millis(20))
    scene.controller.connected(2, former, Millis(20), object())
    assert scene.tick(1000).records == ()


def test_a_process_that_was_killed_is_registered_again_without_waiting_for_its_session() -> None:
    scene = Scene().with_brokers(1, 2)
    refused = scene.decide(a_registration(2, 1)).reply
    assert refused == messages.BrokerRegistrationResponse(error_code=Errors.DUPLICATE_BROKER_REGISTRATION)
    scene.controller.disconnected(2, scene.epoch_of(2), Millis(10))
    again = scene.play(a_registration(2, 1)).reply
    assert isinstance(again, messages.BrokerRegistrationResponse)
    assert again.error_code == Errors.NONE


def test_without_a_grace_only_the_session_counts() -> None:
    scene = Scene(ottla_broker_disconnect_grace_ms="-1").with_brokers(1, 2)
    scene.controller.disconnected(2, scene.epoch_of(2), Millis(1000))
    assert (scene.controller.next_tick(Millis(1000)), missing(scene)) == (9000, [])
    assert scene.tick(9000).effects == (Fenced(2, TIMED_OUT),)


def test_brokers_are_fenced_one_at_a_time() -> None:
    scene = Scene().with_brokers(1, 2, 3).with_partition(2, 3, 1)
    assert scene.tick(9000).effects == (Fenced(2, TIMED_OUT),)
    assert scene.controller.next_tick(Millis(9000)) == 9000
    assert scene.tick(9000).effects == (Fenced(3, TIMED_OUT),)
    assert (scene.partition().leader, scene.partition().isr) == (1, (1,))
    assert scene.tick(9000).records == ()


def test_the_broker_of_the_controllers_own_process_lives_as_long_as_the_controller() -> None:
    scene = Scene().with_brokers(1)
    assert scene.controller.next_tick(Millis(0)) is None
    assert scene.tick(1_000_000).records == ()


def test_a_heartbeat_of_a_former_life_keeps_nobody_alive() -> None:
    scene = Scene().with_brokers(1, 2)
    scene.now = Millis(8000)
    scene.play(messages.BrokerHeartbeatRequest(broker_id=2, broker_epoch=scene.epoch_of(2) - 1))
    assert scene.tick(9000).effects == (Fenced(2, TIMED_OUT),)


def test_a_controller_that_slept_itself_reads_its_mail_before_it_fences() -> None:
    scene = Scene().with_brokers(1, 2, 3)
    assert scene.tick(20_000).records == ()
    assert scene.controller.next_tick(Millis(20_000)) == 20_500
    scene.beat(2)
    assert scene.tick(20_500).effects == (Fenced(3, TIMED_OUT),)
    assert scene.tick(20_500).records == ()


# A new active controller


def test_a_new_controller_suspects_the_node_that_led_before_and_gives_the_others_time_to_find_it() -> None:
    scene = Scene().with_brokers(1, 2, 3)
    scene.controller.activated(Millis(50_000), suspects=(2,))
    assert (scene.controller.next_tick(Millis(50_000)), missing(scene)) == (50_300, [2, 3])
    assert scene.tick(50_300).effects == (Fenced(2, BROKE),)
    assert scene.controller.next_tick(Millis(50_300)) == 51_500
    scene.now = Millis(51_000)
    scene.beat(3)
    assert scene.tick(51_500).records == ()
    assert scene.tick(60_000).effects == (Fenced(3, TIMED_OUT),)


def test_a_new_controller_that_knows_nothing_suspects_everybody() -> None:
    scene = Scene().with_brokers(1, 2, 3)
    scene.controller.activated(Millis(50_000))
    assert [scene.tick(50_300).effects for _ in range(3)] == [(Fenced(2, BROKE),), (Fenced(3, BROKE),), ()]


def test_a_new_controller_takes_in_a_restarted_broker_at_once() -> None:
    scene = Scene().with_brokers(1, 2)
    scene.controller.activated(Millis(50_000))
    scene.now = Millis(50_001)
    reply = scene.decide(a_registration(2, 1)).reply
    assert isinstance(reply, messages.BrokerRegistrationResponse)
    assert reply.error_code == Errors.NONE


def test_fenced_brokers_are_not_waited_for() -> None:
    scene = Scene().with_brokers(1, 2)
    scene.fence(2)
    scene.controller.activated(Millis(50_000))
    assert scene.controller.next_tick(Millis(50_000)) is None
