"""CreateAcls and DeleteAcls: what is written, what is not, and what is answered."""

from typing import Any

import pytest

from ottla.controller.acls import AclBook
from ottla.metadata.acls import acl_of
from ottla.model.acls import MATCH, Acl, AclFilter
from ottla.model.errors import Errors
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, uuid

Creation = messages.CreateAclsRequest.AclCreation
Filter = messages.DeleteAclsRequest.DeleteAclsFilter

ORDERS = Acl(2, "orders", 3, "User:alice", "*", 3, 3)
PAYMENTS = Acl(2, "pay", 4, "User:alice", "*", 4, 2)
CLUSTER = Acl(4, "kafka-cluster", 3, "User:bob", "10.0.0.1", 7, 3)
EVERYTHING = Filter(1, None, 1, None, None, 1, 1)


def create(scene: Scene, *acls: Acl) -> tuple[list[int], int]:
    """Error codes, and the number of records."""
    decision = scene.play(messages.CreateAclsRequest([Creation(*acl) for acl in acls]), len(acls))
    return [result.error_code for result in decision.reply.results], len(decision.records)


def delete(scene: Scene, *filters: Any) -> tuple[list[tuple[int, list[Acl]]], int]:
    decision = scene.play(messages.DeleteAclsRequest(list(filters)))
    found = [
        (result.error_code, [acl_of_match(each) for each in result.matching_acls])
        for result in decision.reply.filter_results
    ]
    return found, len(decision.records)


def acl_of_match(found: Any) -> Acl:
    return Acl(
        found.resource_type,
        found.resource_name,
        found.pattern_type,
        found.principal,
        found.host,
        found.operation,
        found.permission_type,
    )


def kept(scene: Scene) -> list[Acl]:
    return [acl_of(record) for record in scene.image.acls.values()]


def test_entries_are_written_each_under_an_id_of_its_own() -> None:
    scene = Scene()
    assert create(scene, ORDERS, CLUSTER) == ([0, 0], 2)
    assert kept(scene) == [ORDERS, CLUSTER]
    assert list(scene.image.acls) == [uuid(0), uuid(1)]


def test_what_is_there_already_or_comes_twice_is_fine_and_not_written_again() -> None:
    """Kafka's controller stops at an entry that is logged under two ids."""
    scene = Scene()
    create(scene, ORDERS)
    assert create(scene, ORDERS, PAYMENTS, PAYMENTS) == ([0, 0, 0], 1)
    assert kept(scene) == [ORDERS, PAYMENTS]


@pytest.mark.parametrize(
    "wrong",
    [
        ORDERS._replace(name=""),
        ORDERS._replace(resource=1),
        ORDERS._replace(resource=0),
        ORDERS._replace(resource=99),
        ORDERS._replace(pattern=1),
        ORDERS._replace(pattern=2),
        ORDERS._replace(operation=1),
        ORDERS._replace(operation=0),
        ORDERS._replace(operation=16),
        ORDERS._replace(permission=1),
        ORDERS._replace(permission=0),
        ORDERS._replace(principal="alice"),
        CLUSTER._replace(name="other"),
    ],
)
def test_what_cannot_be_an_entry_is_refused_and_the_rest_goes_on(wrong: Acl) -> None:
    scene = Scene()
    assert create(scene, wrong, PAYMENTS) == ([Errors.INVALID_REQUEST, 0], 1)
    assert kept(scene) == [PAYMENTS]


def test_a_principal_without_a_type_is_told_what_is_meant() -> None:
    decision = Scene().decide(messages.CreateAclsRequest([Creation(*ORDERS._replace(principal="alice"))]), 1)
    assert decision.reply.results[0].error_message == "the principal 'alice' has no type: User:alice is meant?"


def test_operations_that_do_not_fit_the_type_are_written_as_in_kafka() -> None:
    scene = Scene()
    assert create(scene, ORDERS._replace(operation=12)) == ([0], 1)


def test_each_filter_is_told_what_it_found_and_an_entry_goes_once() -> None:
    scene = Scene()
    create(scene, ORDERS, PAYMENTS, CLUSTER)
    alice = Filter(1, None, 1, "User:alice", None, 1, 1)
    covering = Filter(2, "payments", 2, None, None, 1, 1)
    assert delete(scene, covering, alice) == ([(0, [PAYMENTS]), (0, [ORDERS, PAYMENTS])], 2)
    assert kept(scene) == [CLUSTER]
    assert delete(scene, alice) == ([(0, [])], 0)


def test_a_filter_that_leaves_nothing_open_finds_its_one_entry() -> None:
    scene = Scene()
    create(scene, ORDERS, PAYMENTS)
    assert delete(scene, Filter(*ORDERS), Filter(*CLUSTER)) == ([(0, [ORDERS]), (0, [])], 1)


def test_a_filter_with_unknown_codes_is_refused_and_the_others_go_on() -> None:
    scene = Scene()
    create(scene, ORDERS)
    wrong = Filter(99, None, 1, None, None, 1, 1)
    assert delete(scene, wrong, EVERYTHING) == ([(Errors.INVALID_REQUEST, []), (0, [ORDERS])], 1)


def test_more_than_ten_thousand_at_once_are_refused_as_a_whole() -> None:
    scene = Scene()
    many = [ORDERS._replace(name=f"t{at}") for at in range(10_001)]
    codes, records = create(scene, *many)
    assert (set(codes), records) == ({Errors.INVALID_REQUEST}, 0)
    create(scene, *many[:10_000])
    create(scene, *many[10_000:])
    assert delete(scene, EVERYTHING, Filter(*ORDERS)) == ([(Errors.INVALID_REQUEST, [])] * 2, 0)
    assert len(kept(scene)) == 10_001


def test_a_log_with_an_entry_under_two_ids_is_mended_by_its_removal() -> None:
    damaged = [messages.AccessControlEntryRecord(uuid(at), *ORDERS) for at in (1, 2)]
    scene = Scene(damaged)
    assert delete(scene, Filter(*ORDERS)) == ([(0, [ORDERS])], 2)
    assert kept(scene) == []


def test_a_filter_that_names_a_resource_or_a_user_looks_at_its_entries_alone() -> None:
    """A tool that deletes a thousand topics' entries at once must not look at all entries a thousand times."""
    others = [ORDERS._replace(name=f"t{at}", principal=f"User:u{at}") for at in range(100)]
    scene = Scene()
    create(scene, ORDERS, *others)
    book = AclBook(scene.image)
    for wanted in (AclFilter(name="orders"), AclFilter(principal="User:alice"), AclFilter(name="orders", pattern=3)):
        assert list(book.candidates(wanted)) == book.matching(wanted) == [ORDERS]
    assert list(book.candidates(AclFilter(name="nowhere"))) == []
    assert book.matching(AclFilter(resource=2, name="orders", pattern=MATCH)) == [ORDERS]
    assert delete(scene, Filter(1, "orders", 1, None, None, 1, 1)) == ([(0, [ORDERS])], 1)
    assert delete(scene, Filter(1, None, 1, "User:alice", None, 1, 1)) == ([(0, [])], 0)
