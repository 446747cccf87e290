"""10,000 partitions (100 topics of 100), stopped by SIGTERM, started again on the same directory.

Timed from the spawn until Metadata shows a leader for every partition and one more record is acknowledged.
"""

import time

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench import wire
from bench.context import Context, Factory
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.process_cost import memory_of
from bench.rounds import progress
from bench.servers import Server, ServerFailed

NAME = "restart"
METRICS = (
    Metric("seconds", "clean restart", "s", value_at_most(5)),
    Metric("stop", "clean stop", "s"),
    Metric("create", "creating them", "s"),
    Metric("memory", "resident after the restart", "MB"),
)
PARTITIONS_PER_TOPIC = 100
TOPICS_PER_REQUEST = 10
CREATE_PATIENCE_SECONDS = 300.0
LEADER_PATIENCE_SECONDS = 120.0
NO_LEADER = -1


def run(context: Context) -> list[Measure]:
    topics = context.partitions // PARTITIONS_PER_TOPIC
    restarts = 1 if context.quick else min(context.rounds, 3)
    kafka, ottla = context.factories
    # Kafka takes about a minute for each and has no target here: once is enough to compare.
    taken = [trials(context, kafka, topics, 1), trials(context, ottla, topics, restarts)]
    return measures(f"{NAME}, {topics * PARTITIONS_PER_TOPIC:,} partitions", METRICS, taken)


def trials(context: Context, factory: Factory, topics: int, restarts: int) -> list[Trial]:
    server = context.new_server(factory)
    server.start()
    began = time.perf_counter()
    create(server, topics)
    created = time.perf_counter() - began
    found: list[Trial] = [{"create": created}]
    for _ in range(restarts):
        found.append(restarted(server, topics * PARTITIONS_PER_TOPIC))
        progress("restart", server.name, found[-1])
    context.discard(server)
    return found


def create(server: Server, topics: int) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for first in range(0, topics, TOPICS_PER_REQUEST):
        names = [f"many-{number}" for number in range(first, min(first + TOPICS_PER_REQUEST, topics))]
        wanted = [NewTopic(name, PARTITIONS_PER_TOPIC, 1) for name in names]
        for done in admin.create_topics(wanted, request_timeout=CREATE_PATIENCE_SECONDS).values():
            done.result(CREATE_PATIENCE_SECONDS)
    wait_for_leaders(server, topics * PARTITIONS_PER_TOPIC)


def restarted(server: Server, partitions: int) -> Trial:
    asked = time.perf_counter()
    server.stop()
    began = time.perf_counter()
    server.spawn()
    wait_for_leaders(server, partitions)
    server.first_acknowledged("many-0")
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "stop": began - asked, "memory": memory_of(server.pid).resident / 1e6}


def wait_for_leaders(server: Server, partitions: int) -> None:
    """A broker may take connections before it knows its metadata, and may drop one while it starts."""
    deadline = time.monotonic() + LEADER_PATIENCE_SECONDS
    led = 0
    while time.monotonic() < deadline:
        try:
            with server.connect() as connection:
                known = wire.metadata_partitions(connection.ask(wire.metadata_request(None)))
        except ConnectionError:
            known = []
        led = sum(one.error == 0 and one.leader != NO_LEADER for one in known if one.topic.startswith("many-"))
        if led == partitions:
            return
        time.sleep(0.02)
    raise ServerFailed(f"{server.name} shows leaders for {led} of {partitions} partitions")
