"""Large changes of the access control list: a slice at a time, on the way never more allowed than before or after."""

import asyncio
from itertools import count
from random import Random

import pytest

from ottla.broker.security import acl_changes
from ottla.broker.security.acl_changes import SLICE
from ottla.controller.acls import AclBook, create_acls, delete_acls
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.acls import Acl
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.model.permissions import Operation, Resource
from ottla.protocol import messages as m
from ottla.security.acls import AclIndex, Rules

ANY = m.DeleteAclsRequest.DeleteAclsFilter(1, None, 1, None, None, 1, 1)
ALLOW, DENY = 3, 2


class World:
    """A controller, and the index of a node that hears of everything at once."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.book = AclBook(self.image)
        self.index = AclIndex()
        self.seen: list[frozenset[Acl]] = [frozenset()]
        self.sizes: list[int] = []
        self._ids = count(1)

    async def create(self, request: m.CreateAclsRequest) -> m.CreateAclsResponse:
        self.sizes.append(len(request.creations))
        fresh = [Uuid(next(self._ids).to_bytes(16)) for _ in request.creations]
        decision = create_acls(self.book, request, fresh)
        self._replay(decision.records)
        return decision.reply

    async def delete(self, request: m.DeleteAclsRequest) -> m.DeleteAclsResponse:
        self.sizes.append(len(request.filters))
        decision = delete_acls(self.book, request)
        self._replay(decision.records)
        return decision.reply

    def _replay(self, records: object) -> None:
        delta = MetadataDelta(self.image)
        for record in records:  # type: ignore[attr-defined]
            delta.replay(record)
        self.book.follow(delta)
        for acl_id, record in delta.changed_acls.items():
            if record is None:
                self.index.remove(acl_id)
            else:
                self.index.add(acl_id, Acl(*(getattr(record, name) for name in _NAMES)))
        self.image = delta.apply(len(self.seen), 1, 0)
        self.seen.append(frozenset(self.index))


_NAMES = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")


def creation(number: int, permission: int = ALLOW, user: str = "User:ann") -> m.CreateAclsRequest.AclCreation:
    return m.CreateAclsRequest.AclCreation(2, f"t-{number}", 3, user, "*", 3, permission)


def test_a_change_of_one_slice_is_one_decision() -> None:
    world = World()
    answer = asyncio.run(
        acl_changes.create(m.CreateAclsRequest([creation(each) for each in range(SLICE)]), world.create)
    )
    assert (len(answer.results), world.sizes) == (SLICE, [SLICE])


def test_answers_keep_the_order_of_the_request_and_the_wrong_ones_their_errors() -> None:
    world = World()
    wanted = [
        creation(each, DENY if each % 3 else ALLOW, "ann" if each % 7 == 0 else "User:ann") for each in range(430)
    ]
    answer = asyncio.run(acl_changes.create(m.CreateAclsRequest(wanted), world.create))
    assert [each.error_code for each in answer.results] == [
        Errors.INVALID_REQUEST if each % 7 == 0 else 0 for each in range(430)
    ]
    assert world.sizes == [*[SLICE] * 8, 30]


def test_too_many_in_one_request_are_refused_as_a_whole() -> None:
    world = World()
    answer = asyncio.run(acl_changes.create(m.CreateAclsRequest([creation(0)] * 10_001), world.create))
    assert ({each.error_code for each in answer.results}, len(world.index)) == ({Errors.INVALID_REQUEST}, 0)


def readable(acls: frozenset[Acl], names: list[str]) -> set[str]:
    index = AclIndex()
    for number, acl in enumerate(acls):
        index.add(Uuid(number.to_bytes(16)), acl)
    rights = Rules(index).rights("User:ann", "10.0.0.1")
    return {each for each in names if rights.allows(Operation.READ, Resource.TOPIC, each)}


@pytest.mark.parametrize("seed", range(10))
def test_on_the_way_nobody_may_what_neither_the_old_nor_the_new_entries_allow(seed: int) -> None:
    dice = Random(seed)
    entries = [creation(dice.randrange(130), dice.choice((ALLOW, DENY))) for _ in range(250)]
    names = [f"t-{number}" for number in range(130)]
    world = World()
    asyncio.run(acl_changes.create(m.CreateAclsRequest(entries), world.create))
    assert len(world.seen) > 2
    after = readable(world.seen[-1], names)
    assert [readable(acls, names) - after for acls in world.seen] == [set()] * len(world.seen)
    world.seen = world.seen[-1:]
    answer = asyncio.run(acl_changes.delete(m.DeleteAclsRequest([ANY]), world.index, world.delete))
    assert len(world.seen) > 2
    assert [readable(acls, names) - after for acls in world.seen] == [set()] * len(world.seen)
    assert len(answer.filter_results[0].matching_acls) == len(world.seen[0])
    assert not set(world.index)


def test_every_filter_is_told_what_it_found_whoever_deleted_it() -> None:
    world = World()
    asyncio.run(acl_changes.create(m.CreateAclsRequest([creation(each) for each in range(300)]), world.create))
    one = m.DeleteAclsRequest.DeleteAclsFilter(2, "t-7", 3, None, None, 1, 1)
    wrong = m.DeleteAclsRequest.DeleteAclsFilter(99, None, 1, None, None, 1, 1)
    answer = asyncio.run(acl_changes.delete(m.DeleteAclsRequest([one, ANY, wrong]), world.index, world.delete))
    assert [len(each.matching_acls) for each in answer.filter_results] == [1, 300, 0]
    assert [each.error_code for each in answer.filter_results] == [0, 0, Errors.INVALID_REQUEST]
    assert (len(world.index), max(world.sizes)) == (0, SLICE)
