"""The join of two tables by foreign key: eight nodes, two topics and a store, under Kafka's names (KIP-213).

this table ─ send ─ registration topic ─ receive ─ join ─┐
                               the other table ─ foreign join ─┴─ response topic ─ resolver ─ result
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.streams.dsl.draft import Draft
from ottla.streams.dsl.options import Materialized, TableJoined
from ottla.streams.dsl.steps import OperationStep, SinkStep, Step
from ottla.streams.dsl.table_logic import SourceTable, View
from ottla.streams.dsl.table_stores import key_value_store, named_store
from ottla.streams.serdes import Serdes
from ottla.streams.topology.graph import Form, Partitioner, RepartitionTopic, SinkNode, SourceNode
from ottla.streams.topology.operations import (
    ForeignKeySerdes,
    ForeignTableJoin,
    Function,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
from ottla.streams.topology.stores import StoreKind, StoreSpec

if TYPE_CHECKING:
    from ottla.serdes.base import Serde
    from ottla.streams.topology.topology import Topology

_FK_JOIN: Final = "KTABLE-FK-JOIN-"
_REGISTRATION: Final = f"{_FK_JOIN}SUBSCRIPTION-REGISTRATION-"
_PROCESSOR: Final = f"{_FK_JOIN}SUBSCRIPTION-PROCESSOR-"
_RESPONSE: Final = f"{_FK_JOIN}SUBSCRIPTION-RESPONSE-"
_RESOLVER: Final = f"{_FK_JOIN}SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"
_STORE: Final = f"{_FK_JOIN}SUBSCRIPTION-STATE-STORE-"
_OUTPUT: Final = f"{_FK_JOIN}OUTPUT-"


@dataclass(frozen=True, slots=True)
class TableSide:
    step: Step
    sources: tuple[str, ...]
    view: View
    key_serde: "Serde[Any] | None"
    value_serde: "Serde[Any] | None"


@dataclass(frozen=True, slots=True)
class ForeignKeyLogic:
    """What the user said of the join."""

    foreign_key: Function
    foreign_key_with_key: bool
    joiner: Function
    with_key: bool
    left: bool


@dataclass(frozen=True, slots=True)
class JoinResult:
    step: Step
    logic: SourceTable
    sources: tuple[str, ...]
    store_name: str | None


@dataclass(frozen=True, slots=True)
class _Names:
    """In the order in which Kafka takes their numbers."""

    registration_topic: str
    send: str
    registration_sink: str
    registration_source: str
    store: str
    receive: str
    join: str
    foreign_join: str
    response_topic: str
    response_sink: str
    response_source: str
    resolver: str
    result: str


class _InternalSource(Step):
    __slots__ = ("source",)

    def __init__(self, source: SourceNode) -> None:
        super().__init__(source.name)
        self.source = source

    def write(self, topology: "Topology") -> None:
        (topic,) = self.source.topics
        topology.add_repartition_topic(RepartitionTopic(topic))
        topology.add_node(self.source)


class WithoutValue:
    """The partitioner of a table, as the topics of the join use it: they have other values than the table."""

    def __init__(self, partitioner: Partitioner) -> None:
        self._partitioner = partitioner

    def __call__(self, topic: str, key: Any, _value: Any, partitions: int) -> int | None:
        chosen: Any = self._partitioner(topic, key, None, partitions)
        if chosen is None or isinstance(chosen, int):
            return chosen
        several = list(chosen)
        if len(several) != 1:
            raise ValueError(f"a partitioner of a join by foreign key names one partition, not {several}")
        return int(several[0])


def to_the_asking_partition(_topic: str, _key: Any, response: Any, _partitions: int) -> int | None:
    """A partitioner. Subscriptions of the oldest version do not tell (None): then the key decides."""
    partition: int | None = response.partition
    return partition


def add_foreign_key_join(
    draft: Draft,
    this: TableSide,
    other: TableSide,
    how: ForeignKeyLogic,
    joined: "TableJoined[Any, Any]",
    materialized: "Materialized[Any, Any]",
) -> JoinResult:
    names = _names(draft, joined.name)
    serdes = ForeignKeySerdes(this.key_serde, this.value_serde, other.key_serde)
    registration = _registered(draft, this, other, how, serdes, names, joined.other_partitioner)
    response = _answered(draft, this, other, serdes, names, registration, joined.partitioner)
    sources = draft.copartition(this.sources, (response.name,))
    resolver = OperationStep(
        names.resolver,
        lambda: ResponseJoin(
            names.store, serdes, this.view.store, this.view.operations(), how.joiner, how.left, how.with_key
        ),
        connected=this.view.stores,
    )
    draft.add(resolver, response)
    stored, kept = named_store(draft, materialized, _OUTPUT)
    logic = SourceTable(key_value_store(stored, stored.key_serde or this.key_serde, stored.value_serde), kept=kept)
    result = OperationStep(names.result, logic.operation, own_stores=logic.stores, is_versioned=logic.is_versioned)
    draft.add(result, resolver)
    return JoinResult(result, logic, sources, stored.name if kept else None)


def _registered(
    draft: Draft,
    this: TableSide,
    other: TableSide,
    how: ForeignKeyLogic,
    serdes: ForeignKeySerdes,
    names: _Names,
    partitioner: Partitioner | None,
) -> Step:
    """From this table to the source of subscriptions beside the other one."""
    send = OperationStep(
        names.send,
        lambda: SubscriptionSend(
            names.store,
            serdes,
            how.foreign_key,
            how.foreign_key_with_key,
            how.left,
            other.view.store,
            this.step.gives_versions(),
        ),
    )
    draft.add(send, this.step)
    source = _over_topic(
        draft,
        (names.registration_topic, names.registration_sink, names.registration_source),
        (other.key_serde, this.key_serde, Form.SUBSCRIPTION),
        None if partitioner is None else WithoutValue(partitioner),
        send,
    )
    draft.copartition(other.sources, (source.name,))
    return source


def _answered(
    draft: Draft,
    this: TableSide,
    other: TableSide,
    serdes: ForeignKeySerdes,
    names: _Names,
    registration: Step,
    partitioner: Partitioner | None,
) -> Step:
    """From subscriptions, and from changes of the other table, to the source of answers beside this one."""
    store = StoreSpec(names.store, StoreKind.KEY_VALUE, Serdes.bytes, Serdes.bytes)
    receive = OperationStep(
        names.receive, lambda: SubscriptionReceive(names.store, serdes), own_stores=lambda: (store,)
    )
    draft.add(receive, registration)
    join = OperationStep(
        names.join,
        lambda: SubscriptionJoin(names.store, serdes, other.view.store, other.view.operations()),
        connected=other.view.stores,
    )
    draft.add(join, receive)
    foreign_join = OperationStep(
        names.foreign_join,
        lambda: ForeignTableJoin(names.store, serdes, other.step.gives_versions()),
        own_stores=lambda: (store,),
    )
    draft.add(foreign_join, other.step)
    return _over_topic(
        draft,
        (names.response_topic, names.response_sink, names.response_source),
        (this.key_serde, other.value_serde, Form.RESPONSE),
        to_the_asking_partition if partitioner is None else WithoutValue(partitioner),
        join,
        foreign_join,
    )


def _over_topic(
    draft: Draft,
    names: tuple[str, str, str],
    how: "tuple[Serde[Any] | None, Serde[Any] | None, Form]",
    partitioner: Partitioner | None,
    *parents: Step,
) -> Step:
    (topic, sink_name, source_name), (key_serde, inner_serde, form) = names, how
    serdes = (key_serde, inner_serde)
    sink = SinkStep(SinkNode(sink_name, topic, (), None, *serdes, partitioner, repartition=True, form=form))
    draft.add(sink, *parents)
    source = _InternalSource(SourceNode(source_name, (topic,), None, *serdes, form=form))
    draft.add(source, sink)
    return source


def _names(draft: Draft, name: str | None) -> _Names:
    def named(suffix: str, prefix: str) -> str:
        return draft.named(name, prefix, suffix)

    return _Names(
        registration_topic=named("-subscription-registration", _REGISTRATION) + "-topic",
        send=named("-subscription-registration-processor", _REGISTRATION),
        registration_sink=named("-subscription-registration-sink", "KTABLE-SINK-"),
        registration_source=named("-subscription-registration-source", "KTABLE-SOURCE-"),
        store=named("-subscription-store", _STORE),
        receive=named("-subscription-receive", _PROCESSOR),
        join=named("-subscription-join-foreign", _PROCESSOR),
        foreign_join=named("-foreign-join-subscription", _PROCESSOR),
        response_topic=named("-subscription-response", _RESPONSE) + "-topic",
        response_sink=named("-subscription-response-sink", "KTABLE-SINK-"),
        response_source=named("-subscription-response-source", "KTABLE-SOURCE-"),
        resolver=named("-subscription-response-resolver", _RESOLVER),
        result=named("-result", _OUTPUT),
    )
