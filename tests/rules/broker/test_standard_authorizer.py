"""StandardAuthorizer: what it remembers, what makes it forget, and what it says before it knows."""

import logging

import pytest

from ottla.broker.security.authorizer import Rights, Underway
from ottla.broker.security.standard import StandardAuthorizer
from ottla.metadata.acls import record_of
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY, MetadataImage
from ottla.model.acls import Acl
from ottla.model.ids import Uuid
from ottla.model.permissions import Operation, Resource
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.runtime.clock import SystemClock

READ = Acl(Resource.TOPIC, "orders", 3, "User:alice", "*", Operation.READ, 3)
QUESTION = Operation.READ, Resource.TOPIC, "orders"


def uuid(number: int) -> Uuid:
    return Uuid(number.to_bytes(16))


class Scene:
    def __init__(self, **settings: str) -> None:
        self.caught_up = True
        given = Settings.defaults("/data", super_users="User:boss", **settings)
        self.authorizer = StandardAuthorizer(given, SystemClock(), lambda: self.caught_up)
        self.image = EMPTY
        self.underway = Underway("Produce")

    def replay(self, *records: object) -> MetadataImage:
        delta = MetadataDelta(self.image)
        delta.replay_all(records)
        self.image = delta.apply(self.image.offset + 1, 1, 1)
        self.authorizer.on_metadata(delta, self.image)
        return self.image

    def client(self, principal: str = "User:alice", host: str = "127.0.0.1") -> Rights:
        return self.authorizer.for_client(principal, host, self.underway)


def test_a_change_is_in_force_for_connections_that_have_asked_before() -> None:
    scene = Scene()
    first, second = scene.client(), scene.client()
    assert (first.may(*QUESTION), second.sees(*QUESTION)) == (False, False)
    scene.replay(record_of(uuid(1), READ))
    assert (first.may(*QUESTION), second.sees(*QUESTION), first.elsewhere(*QUESTION)) == (True, True, True)
    assert first.may_somewhere(*QUESTION[:2])
    scene.replay(messages.RemoveAccessControlEntryRecord(uuid(1)))
    assert (first.may(*QUESTION), second.sees(*QUESTION), first.elsewhere(*QUESTION)) == (False, False, False)
    assert not first.may_somewhere(*QUESTION[:2])


def test_an_image_is_loaded_whole_and_what_came_and_went_in_one_change_is_gone() -> None:
    scene = Scene()
    image = scene.replay(record_of(uuid(1), READ))
    other = Scene()
    other.authorizer.load(image)
    assert other.client().may(*QUESTION)
    other.image = image
    other.replay(record_of(uuid(2), READ._replace(name="x")), messages.RemoveAccessControlEntryRecord(uuid(2)))
    assert list(other.authorizer.acls.acls) == [uuid(1)]


def test_before_the_acls_are_read_nobody_but_super_users_is_allowed_anything() -> None:
    scene = Scene()
    scene.caught_up = False
    scene.replay(record_of(uuid(1), READ))
    alice, boss = scene.client(), scene.client("User:boss")
    assert [scene.authorizer.is_ready_for(each) for each in ("User:alice", "User:boss")] == [False, True]
    assert (alice.may(*QUESTION), boss.may(*QUESTION)) == (False, True)
    assert (alice.may_somewhere(*QUESTION[:2]), boss.may_somewhere(*QUESTION[:2])) == (False, True)
    scene.caught_up = True
    assert alice.may(*QUESTION)  # the refusal was not remembered
    assert alice.may_somewhere(*QUESTION[:2])


def test_no_more_answers_are_kept_than_the_setting_says() -> None:
    scene = Scene(ottla_authorizer_cache_entries="10")
    clients = [scene.client(host=f"10.0.0.{number}") for number in range(3)]
    for number in range(50):
        for client in clients:
            client.sees(Operation.READ, Resource.TOPIC, f"t{number}")
            assert sum(map(len, scene.authorizer._known.values())) <= 10


def test_what_is_known_of_a_client_goes_with_its_last_connection() -> None:
    scene = Scene()
    client = scene.client()
    client.sees(*QUESTION)
    assert len(scene.authorizer._known) == 1
    del client
    assert len(scene.authorizer._known) == 0


def test_addresses_are_compared_as_java_writes_them() -> None:
    scene = Scene()
    scene.replay(record_of(uuid(1), READ._replace(host="0:0:0:0:0:0:0:1")))
    assert scene.client(host="::1").may(*QUESTION)


def test_refusals_name_the_request_and_what_is_asked_in_passing_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    scene = Scene()
    client = scene.client()
    client.sees(*QUESTION)
    assert caplog.messages == []
    scene.underway.api = "Fetch"
    client.may(*QUESTION)
    assert [" for request = Fetch with " in message for message in caplog.messages] == [True]


def test_who_debugs_hears_of_everything_that_is_allowed(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.replay(record_of(uuid(1), READ))
    client = scene.client()
    assert client.may(*QUESTION)
    caplog.set_level(logging.DEBUG, "kafka.authorizer.logger")
    scene.authorizer.forget()  # as the handler does that changed the level
    assert client.may(*QUESTION)
    assert client.may(*QUESTION)
    assert [" is Allowed " in message for message in caplog.messages] == [True]  # the second within the same second
