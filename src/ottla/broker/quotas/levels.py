"""Which of the quotas that are set applies to a client: Kafka's eight levels, the most precise first (KIP-55)."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.metadata.image import QuotaEntity
from ottla.model.quotas import CLIENT_ID, IP, USER


class Level(IntEnum):
    USER_CLIENT = 1
    USER_DEFAULT_CLIENT = 2
    USER = 3
    DEFAULT_USER_CLIENT = 4
    DEFAULT_USER_DEFAULT_CLIENT = 5
    DEFAULT_USER = 6
    CLIENT = 7
    DEFAULT_CLIENT = 8


class Bucket(NamedTuple):
    """Whose use is counted together."""

    user: str | None
    """None: every user's."""
    client_id: str | None


class Applied(NamedTuple):
    level: Level
    entity: QuotaEntity
    """As it was set."""
    bucket: Bucket
    bound: float


def levels(user: str, client_id: str) -> Iterator[tuple[Level, QuotaEntity, Bucket]]:
    both, of_user, of_client = Bucket(user, client_id), Bucket(user, None), Bucket(None, client_id)
    yield Level.USER_CLIENT, ((CLIENT_ID, client_id), (USER, user)), both
    yield Level.USER_DEFAULT_CLIENT, ((CLIENT_ID, None), (USER, user)), both
    yield Level.USER, ((USER, user),), of_user
    yield Level.DEFAULT_USER_CLIENT, ((CLIENT_ID, client_id), (USER, None)), both
    yield Level.DEFAULT_USER_DEFAULT_CLIENT, ((CLIENT_ID, None), (USER, None)), both
    yield Level.DEFAULT_USER, ((USER, None),), of_user
    yield Level.CLIENT, ((CLIENT_ID, client_id),), of_client
    yield Level.DEFAULT_CLIENT, ((CLIENT_ID, None),), of_client


def applied(bounds: Mapping[QuotaEntity, float], user: str, client_id: str) -> Applied | None:
    """`bounds` are those of one kind of quota. None: there is no limit."""
    for level, entity, bucket in levels(user, client_id):
        bound = bounds.get(entity)
        if bound is not None:
            return Applied(level, entity, bucket, bound)
    return None


def ip_bound(bounds: Mapping[QuotaEntity, float], address: str) -> float | None:
    bound = bounds.get(((IP, address),))
    return bounds.get(((IP, None),)) if bound is None else bound
