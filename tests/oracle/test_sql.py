"""Queries of SQL do what Kafka Streams does with the same topology, record by record; what is in sql_recorder.py."""

from collections.abc import Iterator, Sequence

import pytest

from ottla.streams.tasks.operators.aggregates import FOLD_SUFFIX
from ottla.streams.tasks.store_maker import backend_names
from ottla.streams.topology.graph import changelog_topic
from tests.oracle.batches import topology_in_batches
from tests.oracle.calls import value_of
from tests.oracle.cases import Answer, Written
from tests.oracle.comparing import same_outputs, same_sequences
from tests.oracle.kafka import Oracle
from tests.oracle.ours import APPLICATION, driven_topology
from tests.oracle.sql_cases import FAMILIES, SqlCase, disturbed, query_tests, random_sql, sql_case

pytestmark = pytest.mark.jvm

SEEDS = range(8)
OTHER_SEEDS = range(100, 103)
MORE_SEEDS = range(100, 112)
MANY_SEEDS = range(200, 300)


def asked(oracle: Oracle, cases: Sequence[SqlCase]) -> Iterator[tuple[SqlCase, Answer]]:
    answers = oracle.ask_all([each.case for each in cases])
    for each, (_, theirs) in zip(cases, answers, strict=True):
        theirs.outputs = [[of_results(each, record) for record in records] for records in theirs.outputs]
        yield each, theirs


def of_results(sql: SqlCase, record: Written) -> Written:
    """Kafka's store of an aggregate keeps our state beside the result; ours keeps the result, and a state only if that
    does not tell it."""
    if record.value is None or not record.value.startswith('{"kept"'):
        return record
    stores = sql.topology.graph.stores
    store = next(each for name, each in stores.items() if changelog_topic(APPLICATION, name) == record.topic)
    assert store.value_serde is not None
    data = store.value_serde.serialize(value_of(record.value))
    return record._replace(value=None if data is None else str(data, "latin-1"))


def the_same(oracle: Oracle, cases: Sequence[SqlCase]) -> None:
    written = 0
    for sql, theirs in asked(oracle, cases):
        same_outputs(sql.case, theirs, driven_topology(sql.topology, sql.case))
        written += sum(map(len, theirs.outputs))
    assert written > len(cases)


def written_down() -> list[SqlCase]:
    found = [sql_case(name, given) for name, given in query_tests()]
    return [each for each in found if each is not None]


def test_query_tests_give_what_kafka_streams_gives(oracle: Oracle) -> None:
    cases = written_down()
    assert len(cases) >= 100
    the_same(oracle, cases)


def test_query_tests_with_disorder_and_tombstones_give_what_kafka_streams_gives(oracle: Oracle) -> None:
    cases = written_down()
    for each in cases:
        disturbed(each, 1)
    the_same(oracle, cases)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_queries_give_what_kafka_streams_gives(oracle: Oracle, family: str) -> None:
    the_same(oracle, [random_sql(family, seed) for seed in SEEDS])


@pytest.mark.matrix
@pytest.mark.parametrize("family", FAMILIES)
def test_many_random_queries_give_what_kafka_streams_gives(oracle: Oracle, family: str) -> None:
    the_same(oracle, [random_sql(family, seed) for seed in MANY_SEEDS])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_task_that_lives_for_one_record_goes_on_where_the_last_one_stopped(oracle: Oracle, family: str) -> None:
    for sql, theirs in asked(oracle, [random_sql(family, seed) for seed in OTHER_SEEDS]):
        same_outputs(sql.case, theirs, topology_in_batches(sql.topology, sql.case))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_task_that_lost_its_stores_goes_on_from_its_changelogs(oracle: Oracle, family: str) -> None:
    cases = [sql for seed in MORE_SEEDS if tells_its_state(sql := random_sql(family, seed))]
    assert cases
    for sql, theirs in asked(oracle, cases):
        same_outputs(sql.case, theirs, topology_in_batches(sql.topology, sql.case, lost=True))


def tells_its_state(sql: SqlCase) -> bool:
    """An average does not tell how many values it is of: such state is not begun from changelogs."""
    stores = [name for part in sql.topology.sub_topologies() for name in backend_names(part)]
    return not any(FOLD_SUFFIX in name for name in stores)


@pytest.mark.parametrize("size", [3, 7])
def test_where_batches_end_changes_nothing_for_one_input_topic(oracle: Oracle, size: int) -> None:
    cases = [random_sql(family, seed) for family in FAMILIES for seed in OTHER_SEEDS]
    for sql, theirs in asked(oracle, [each for each in cases if len(each.case.topics()) == 1]):
        same_sequences(sql.case, theirs, topology_in_batches(sql.topology, sql.case, size))
