"""Controlled shutdown: a broker hands over what it leads, and may go when everybody knows."""

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.controller.scene import Scene

STAY = messages.BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=False)
GO = messages.BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True, should_shut_down=True)


def leaving(scene: Scene) -> Scene:
    assert scene.beat(2, want_shut_down=True).reply == STAY
    return scene


def test_it_waits_until_the_others_have_read_who_leads_now() -> None:
    scene = leaving(Scene().with_brokers(2, 3).with_partition(2, 3))
    after = scene.partition()
    assert (after.leader, after.isr, scene.image.brokers[2].in_controlled_shutdown) == (3, (3,), True)
    shutdown = scene.image.offset
    assert scene.beat(2, want_shut_down=True).records == ()
    scene.beat(3, current_metadata_offset=shutdown - 1)
    assert scene.beat(2, want_shut_down=True).reply == STAY
    scene.beat(3, current_metadata_offset=shutdown)
    assert scene.beat(2, want_shut_down=True).reply == GO
    assert scene.image.brokers[2].fenced


def test_it_does_not_wait_for_the_controllers_own_broker_nor_for_the_dead() -> None:
    scene = Scene().with_brokers(1, 2, 3).with_partition(2, 1)
    scene.fence(3)
    leaving(scene)
    assert scene.beat(2, want_shut_down=True).reply == GO


def test_what_only_the_leaving_broker_has_is_left_without_a_leader() -> None:
    scene = leaving(Scene().with_brokers(2, 3).with_partition(2))
    after = scene.partition()
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (-1, (), (2,), (2,))


def test_a_broker_that_leads_nothing_goes_at_once() -> None:
    scene = Scene().with_brokers(2, 3).with_partition(3, 2)
    assert scene.beat(2, want_shut_down=True).reply == GO
    assert (scene.partition().isr, scene.image.brokers[2].fenced) == ((3,), True)


def test_a_broker_that_must_go_now_is_fenced_without_ceremony() -> None:
    scene = Scene().with_brokers(2, 3).with_partition(2, 3)
    assert scene.beat(2, want_shut_down=True, want_fence=True).reply == GO
    assert scene.partition().leader == 3


def test_a_fenced_broker_may_go_and_nothing_is_written() -> None:
    scene = Scene().with_brokers(2, 3)
    scene.fence(2)
    decision = scene.beat(2, want_shut_down=True)
    assert (decision.reply, decision.records) == (GO, ())


def test_a_new_controller_goes_on_with_a_shutdown_it_did_not_see_begin() -> None:
    scene = leaving(Scene().with_brokers(2, 3).with_partition(2, 3))
    scene.controller.activated(Millis(0))
    assert scene.beat(2, want_shut_down=True).reply == GO


def test_a_leaving_broker_leads_nothing_new() -> None:
    scene = leaving(Scene().with_brokers(2, 3).with_partition(2, 3))
    scene.fence(3)
    assert scene.partition().leader == -1


def test_a_broker_that_was_fenced_on_its_way_out_and_stays_is_unfenced_and_not_let_go() -> None:
    scene = leaving(Scene().with_brokers(2, 3).with_partition(2, 3))
    scene.tick(9000)
    assert scene.image.brokers[2].fenced
    assert scene.beat(2).reply == STAY
    assert scene.beat(2).reply == STAY


def test_a_broker_that_went_is_taken_in_again_without_waiting_for_its_session() -> None:
    scene = Scene().with_brokers(2, 3)
    scene.beat(2, want_shut_down=True)
    reply = scene.register(2, 1).reply
    assert isinstance(reply, messages.BrokerRegistrationResponse)
    assert reply.error_code == Errors.NONE
