"""What a cluster tells of itself over HTTP, after known traffic and after known faults."""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from ottla import __version__
from ottla.testing import Cluster
from tests.support.prometheus import Samples, parsed
from tests.support.strimzi_names import ASKED_FOR

FREE = "http://127.0.0.1:0"
PATIENCE_S = 30.0
OF_KAFKA = ('should not have "_count" suffix', 'should not have "_sum" suffix', "'snake_case' not 'camelCase'")
"""What promtool would name otherwise, and Kafka's dashboards ask for."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(3, http_listeners=FREE, group_initial_rebalance_delay_ms=0) as cluster:
        yield cluster


def got(kafka: Cluster, node_id: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"{kafka.http_address(node_id)}{path}", timeout=PATIENCE_S) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def scraped(kafka: Cluster, node_id: int) -> Samples:
    status, text = got(kafka, node_id, "/metrics")
    assert status == 200
    return parsed(text)


def over_all(kafka: Cluster, name: str, **labels: str) -> float:
    """As a dashboard sums it."""
    return sum(scraped(kafka, node_id).total(name, **labels) for node_id in kafka.running)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)


def create(kafka: Cluster, topic: str, partitions: int, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    made = admin.create_topics([NewTopic(topic, partitions, 3, config=dict(config))])
    made[topic].result(PATIENCE_S)


def produce(kafka: Cluster, topic: str, values: list[bytes], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 50})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE_S) == 0


def consume(kafka: Cluster, group: str, topic: str, records: int) -> None:
    """Reads so many of partition 0, and commits behind the last."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = 0
    while found < records:
        found += len(consumer.consume(1, PATIENCE_S))
    consumer.commit(offsets=[TopicPartition(topic, 0, records)], asynchronous=False)
    consumer.close()


def test_every_name_that_the_usual_dashboards_and_alerts_ask_for_is_served(kafka: Cluster) -> None:
    create(kafka, "names", 1)
    produce(kafka, "names", [b"one"])
    consume(kafka, "names-readers", "names", 1)
    served = {name for node_id in kafka.running for name in scraped(kafka, node_id).names}
    assert {source: [each for each in asked if each not in served] for source, asked in ASKED_FOR.items()} == {
        source: [] for source in ASKED_FOR
    }


def test_records_and_bytes_are_counted_once_in_the_cluster(kafka: Cluster) -> None:
    create(kafka, "words", 1)
    produce(kafka, "words", [b"x" * 100] * 50)
    consume(kafka, "words-readers", "words", 50)
    size = max(scraped(kafka, n).total("kafka_log_log_size", topic="words") for n in kafka.running)
    topic = "kafka_server_brokertopicmetrics_"
    assert over_all(kafka, f"{topic}messagesin_total", topic="words") == 50
    assert over_all(kafka, f"{topic}bytesin_total", topic="words") == size
    assert over_all(kafka, f"{topic}bytesout_total", topic="words") >= size
    assert over_all(kafka, f"{topic}replicationbytesin_total", topic="words") == 2 * size
    assert over_all(kafka, f"{topic}replicationbytesout_total", topic="words") >= 2 * size, "some may be sent twice"
    assert over_all(kafka, f"{topic}failedproducerequests_total", topic="words") == 0
    leader = scraped(kafka, kafka.leader_of("words"))
    requests = leader.total("kafka_network_requestmetrics_requests_total", request="Produce")
    assert 0 < requests <= leader.total("kafka_network_requestmetrics_totaltimems_count", request="Produce") * 16
    assert leader.total("kafka_network_requestmetrics_totaltimems", request="Produce", quantile="0.99") > 0


def test_a_refused_produce_is_counted_as_failed(kafka: Cluster) -> None:
    create(kafka, "small", 1, **{"max.message.bytes": "200"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("small", b"x" * 1000)
    producer.flush(PATIENCE_S)
    assert over_all(kafka, "kafka_server_brokertopicmetrics_failedproducerequests_total", topic="small") == 1
    assert over_all(kafka, "kafka_server_brokertopicmetrics_messagesin_total", topic="small") == 0


def test_an_answer_that_a_thread_writes_is_counted_as_others_are(kafka: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    everything = (ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
    admin.describe_acls(AclBindingFilter(*everything)).result(PATIENCE_S)  # type: ignore[arg-type]  # it takes None
    of_requests = "kafka_network_requestmetrics_"
    assert over_all(kafka, f"{of_requests}requests_total", request="DescribeAcls") == 1
    assert over_all(kafka, f"{of_requests}totaltimems_count", request="DescribeAcls") == 1


def test_the_lag_of_a_group_is_told_by_its_coordinator_alone(kafka: Cluster) -> None:
    create(kafka, "orders", 1)
    produce(kafka, "orders", [b"x"] * 30)
    consume(kafka, "slow", "orders", 10)
    told = [scraped(kafka, node_id).found("kafka_consumergroup_lag", consumergroup="slow") for node_id in kafka.running]
    assert [list(lags.values()) for lags in told if lags] == [[20]]
    assert over_all(kafka, "kafka_consumergroup_current_offset", consumergroup="slow") == 10
    assert over_all(kafka, "kafka_consumergroup_lag_sum", consumergroup="slow", topic="orders") == 20
    assert over_all(kafka, "kafka_topic_partition_current_offset", topic="orders") == 30


def test_the_lag_in_a_partition_that_lives_elsewhere_is_asked_of_its_leader(kafka: Cluster) -> None:
    """Of a topic with one replica only one broker knows the end, and it is not the coordinator of every group."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic("alone", 1, 1)])["alone"].result(PATIENCE_S)
    produce(kafka, "alone", [b"x"] * 7)
    groups = [f"far-{number}" for number in range(6)]
    for group in groups:
        consume(kafka, group, "alone", 3)
    others = [node_id for node_id in kafka.running if node_id != kafka.leader_of("alone")]
    told = [node_id for node_id in others if scraped(kafka, node_id).found("kafka_consumergroup_lag", topic="alone")]
    assert told, "six groups, and all of them are coordinated by the leader of the partition"
    for group in groups:
        assert over_all(kafka, "kafka_consumergroup_lag", consumergroup=group) == 4


def test_one_node_is_the_active_controller_and_all_agree_on_it(kafka: Cluster) -> None:
    views = {node_id: scraped(kafka, node_id) for node_id in kafka.running}
    active = [n for n, view in views.items() if view.total("kafka_controller_kafkacontroller_activecontrollercount")]
    assert active == [kafka.controller]
    assert {view.total("kafka_server_raftmetrics_current_leader") for view in views.values()} == {kafka.controller}
    states = {n: view.labels("kafka_server_raftmetrics_current_state", "current_state") for n, view in views.items()}
    assert states == {n: ["leader" if n == kafka.controller else "follower"] for n in kafka.running}
    assert sum(view.total("kafka_brokers") for view in views.values()) == 3


def test_a_node_that_is_killed_is_seen_in_the_metrics_of_the_others() -> None:
    with Cluster(3, http_listeners=FREE, min_insync_replicas=2) as kafka:
        create(kafka, "orders", 3)
        under_replicated = "kafka_server_replicamanager_underreplicatedpartitions"
        assert over_all(kafka, under_replicated) == 0
        kafka.kill(3)
        until(lambda: over_all(kafka, under_replicated) >= 3)
        assert over_all(kafka, "kafka_topic_partition_under_replicated_partition", topic="orders") == 3
        assert over_all(kafka, "kafka_cluster_partition_atminisr", topic="orders") == 3
        assert over_all(kafka, "kafka_server_replicamanager_underminisrpartitioncount") == 0
        until(lambda: over_all(kafka, "kafka_controller_kafkacontroller_fencedbrokercount") == 2)
        assert over_all(kafka, "kafka_server_replicamanager_isrshrinks_total") > 0
        kafka.restart(3)
        until(lambda: over_all(kafka, under_replicated) == 0)
        assert over_all(kafka, "kafka_server_replicamanager_isrexpands_total") >= 3


def test_a_partition_without_a_leader_is_told_by_the_active_controller() -> None:
    with Cluster(3, http_listeners=FREE) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        admin.create_topics([NewTopic("alone", replica_assignment=[[3]], num_partitions=1)])["alone"].result(PATIENCE_S)
        kafka.kill(3)
        until(lambda: over_all(kafka, "kafka_topic_partition_leader", topic="alone") == -1)
        assert over_all(kafka, "kafka_topic_partition_under_replicated_partition", topic="alone") == 1
        assert over_all(kafka, "kafka_controller_kafkacontroller_offlinepartitionscount") == 2, "two controllers see it"


def test_partitions_beyond_the_limit_are_in_the_sums_only() -> None:
    with Cluster(http_listeners=FREE, ottla_metrics_max_partitions=2) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        admin.create_topics([NewTopic("many", 5, 1)])["many"].result(PATIENCE_S)
        status, text = got(kafka, 1, "/metrics")
        found = parsed(text)
        assert status == 200
        assert found.total("kafka_server_replicamanager_partitioncount") == 5
        assert len(found.found("kafka_log_log_size")) == 2
        assert found.total("ottla_metrics_left_out") == 3
        assert "# 5 partitions, of which 2 are told: ottla.metrics.max.partitions" in text


def test_a_node_is_alive_and_ready_and_says_what_it_is(kafka: Cluster) -> None:
    assert got(kafka, 1, "/healthz") == (200, '{"status":"alive"}')
    until(lambda: got(kafka, 1, "/readyz") == (200, '{"status":"ready"}'))
    status, text = got(kafka, 2, "/version")
    assert status == 200
    found = json.loads(text)
    assert (found["version"], found["node_id"]) == (__version__, 2)


def test_a_node_that_is_not_ready_says_why() -> None:
    with Cluster(3, http_listeners=FREE, min_insync_replicas=3) as kafka:
        create(kafka, "orders", 3)
        until(lambda: got(kafka, 1, "/readyz")[0] == 200)
        kafka.kill(3)
        until(lambda: "under_min_isr" in got(kafka, 1, "/readyz")[1])
        status, text = got(kafka, 1, "/readyz")
        assert status == 503
        reasons = json.loads(text)["reasons"]
        assert "have fewer in sync than min.insync.replicas" in reasons["under_min_isr"]
        assert got(kafka, 1, "/healthz")[0] == 200


def test_a_taken_port_costs_the_service_and_not_the_node(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Cluster(http_listeners=f"http://127.0.0.1:{port}") as kafka:
            produce(kafka, "words", [b"x"])
            with pytest.raises(ValueError, match="has no HTTP"):
                kafka.http_address(1)
    assert [record.getMessage() for record in caplog.records if "metrics" in record.getMessage()] == [
        f"no metrics and health: cannot listen on 127.0.0.1:{port}: another process does. "
        "Stop it, or choose another port in http.listeners"
    ]


def test_promtool_reads_what_a_node_serves(kafka: Cluster) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; on Debian: apt install prometheus")
    _, text = got(kafka, kafka.controller, "/metrics")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if not line.endswith(OF_KAFKA)]
    assert complaints == []


def test_nothing_of_http_is_loaded_before_somebody_asks() -> None:
    """The idle memory and the start of a node are watched: uvicorn costs 7 MB and 60 ms."""
    program = """
import sys
from ottla.testing import Cluster
with Cluster(http_listeners="http://127.0.0.1:0") as kafka:
    print(sorted(name for name in ("uvicorn", "starlette", "httptools", "msgspec", "ottla.http.serving",
                                   "ottla.node.monitoring.pages") if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
