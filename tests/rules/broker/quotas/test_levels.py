"""Which quota applies: eight levels, each kind of quota on its own, and who shares a bucket with whom."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.quotas.levels import Applied, Bucket, Level, applied, ip_bound
from ottla.metadata.image import QuotaEntity

BOTH: QuotaEntity = (("client-id", "c"), ("user", "u"))
ORDER: list[tuple[Level, QuotaEntity, Bucket]] = [
    (Level.USER_CLIENT, BOTH, Bucket("u", "c")),
    (Level.USER_DEFAULT_CLIENT, (("client-id", None), ("user", "u")), Bucket("u", "c")),
    (Level.USER, (("user", "u"),), Bucket("u", None)),
    (Level.DEFAULT_USER_CLIENT, (("client-id", "c"), ("user", None)), Bucket("u", "c")),
    (Level.DEFAULT_USER_DEFAULT_CLIENT, (("client-id", None), ("user", None)), Bucket("u", "c")),
    (Level.DEFAULT_USER, (("user", None),), Bucket("u", None)),
    (Level.CLIENT, (("client-id", "c"),), Bucket(None, "c")),
    (Level.DEFAULT_CLIENT, (("client-id", None),), Bucket(None, "c")),
]


def test_the_most_precise_level_that_is_set_counts() -> None:
    bounds = {entity: float(place) for place, (_, entity, _) in enumerate(ORDER, 1)}
    for place, (level, entity, bucket) in enumerate(ORDER, 1):
        assert applied(bounds, "u", "c") == Applied(level, entity, bucket, float(place))
        del bounds[entity]
    assert applied(bounds, "u", "c") is None


names = st.one_of(st.none(), st.sampled_from(["u", "v", "c", "d"]))
entities = st.one_of(
    st.tuples(st.just("both"), names, names),
    st.tuples(st.just("user"), names, st.none()),
    st.tuples(st.just("client-id"), st.none(), names),
)


def entity_of(kind: str, user: str | None, client: str | None) -> QuotaEntity:
    if kind == "both":
        return (("client-id", client), ("user", user))
    return ((kind, user if kind == "user" else client),)


def twin(bounds: dict[QuotaEntity, float], user: str, client: str) -> QuotaEntity | None:
    """Every quota that fits, sorted by Kafka's order: the user's own before a default, a pair before one alone."""

    def fits(entity: QuotaEntity) -> bool:
        return all(name in (None, {"user": user, "client-id": client}[kind]) for kind, name in entity)

    def place(entity: QuotaEntity) -> tuple[int, ...]:
        parts = dict(entity)
        if "user" not in parts:
            return (2, 0, parts["client-id"] is None)
        return (parts["user"] is None, "client-id" not in parts, parts.get("client-id") is None)

    return min(filter(fits, bounds), key=place, default=None)


@given(st.dictionaries(entities, st.floats(1, 9)), st.sampled_from("uv"), st.sampled_from("cd"))
def test_it_is_the_first_of_all_that_fit(
    drawn: dict[tuple[str, str | None, str | None], float], user: str, client: str
) -> None:
    bounds = {entity_of(*entity): bound for entity, bound in drawn.items()}
    found = applied(bounds, user, client)
    assert (None if found is None else found.entity) == twin(bounds, user, client)
    if found is not None:
        assert found.bound == bounds[found.entity]
        named = dict(found.entity)
        assert found.bucket == (user if "user" in named else None, client if "client-id" in named else None)


def test_an_address_has_its_own_rate_or_the_default() -> None:
    rates: dict[QuotaEntity, float] = {(("ip", "10.0.0.1"),): 5.0, (("ip", None),): 1.0}
    assert [ip_bound(rates, address) for address in ("10.0.0.1", "10.0.0.2")] == [5.0, 1.0]
    assert ip_bound({}, "10.0.0.1") is None
