"""Records that their topics do not take, such as those that are too large: what the production handler says of them.

They are found where rows are packed for the sink, far behind the node that made them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark import cloudpickle

from ottla.pipelines.sink.limits import Instead, Refused
from ottla.streams.errors import (
    DEAD_LETTERS,
    FAIL,
    ErrorContext,
    Handler,
    ProducerRecord,
    StreamsError,
    handlers_of,
    verdict,
)
from ottla.streams.topology.graph import Graph, SinkNode, decorated


def production_judge(application_id: str, graph: Graph, config: Mapping[str, Any]) -> bytes | None:
    """Pickled. None where it is settled that such a record ends the application: nobody has to look for them then."""
    _, _, handler = handlers_of(config)
    if handler == FAIL:
        return None
    sinks = [node for node in graph.nodes.values() if isinstance(node, SinkNode) and node.topic is not None]
    nodes = {
        decorated(application_id, node.topic) if node.repartition else node.topic: node.name
        for node in sinks
        if node.topic is not None
    }
    found: bytes = cloudpickle.dumps(ProductionJudge(handler, config.get(DEAD_LETTERS), nodes))  # type: ignore[no-untyped-call]
    return found


class ProductionJudge:
    """`nodes`: which sink writes a topic; a changelog has none."""

    def __init__(self, handler: Handler, dead_letters: str | None, nodes: Mapping[str, str]) -> None:
        self._handler = handler
        self._dead_letters = dead_letters
        self._nodes = nodes

    def __call__(self, refused: Refused) -> Sequence[Instead]:
        topic, partition, key, value, headers, timestamp, error = refused
        record = ProducerRecord(topic, key, value, headers, partition, timestamp)
        # As in Kafka Streams: the record it came of is no longer known, and not a part of the dead letter.
        context = ErrorContext(self._nodes.get(topic, topic), "", None, -1, -1, timestamp, (), None, None, record)
        said = verdict(self._handler, context, error, self._dead_letters, may_retry=True)
        if said.fails:
            raise StreamsError(f"a record for {topic} could not be written {context}: {error}") from error
        return [
            Instead(topic, None if place < 0 else place, key, value, headers, at)
            for topic, place, _, key, value, at, headers in said.dead_letters
        ]
