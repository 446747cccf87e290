"""Apache's own tools and clients against three of our nodes: what a Kafka operator types keeps working, also while a
node is away. The files that the nodes leave are read by Apache's tools as well."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Cluster
from tests.support.clients.base import Given
from tests.support.clients.foreign import ApacheJava
from tests.support.jvm import Tools
from tests.support.patience import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.jvm

DEADLINE_SECONDS = PATIENCE_SECONDS
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("three-nodes")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def whole(data: Path) -> Iterator[Cluster]:
    often = 4096  # bytes of metadata between two snapshots
    settings = {
        "metadata_log_max_record_bytes_between_snapshots": often,
        "auto_leader_rebalance_enable": False,
        "broker_session_timeout_ms": 120_000,  # a paused node stays a member for as long as a tool may take
    }
    with Cluster(3, data_dir=data, **settings) as cluster:
        yield cluster


@pytest.fixture
def kafka(whole: Cluster) -> Cluster:
    """All three nodes are up."""
    for node_id in (1, 2, 3):
        if node_id not in whole.running:
            whole.restart(node_id)
    return whole


class Shell:
    """The tools with the cluster's addresses filled in."""

    def __init__(self, tools: Tools, kafka: Cluster, through: int | None = None) -> None:
        self._tools = tools
        self._kafka = kafka
        self._through = through

    def through(self, node_id: int) -> "Shell":
        """The tools begin at one node. Java's admin client holds on to a paused one for 30 s, and may do so twice."""
        return Shell(self._tools, self._kafka, node_id)

    @property
    def _servers(self) -> str:
        return self._kafka.bootstrap_server(self._through) if self._through else self._kafka.bootstrap_servers

    def __call__(self, tool: str, *args: str, stdin: str = "") -> str:
        return self._tools.must(tool, "--bootstrap-server", self._servers, *args, stdin=stdin)

    def last(self, tool: str, verb: str, *args: str) -> str:
        """For tools whose first word is the verb."""
        return self._tools.must(tool, verb, "--bootstrap-server", self._servers, *args)

    def create(self, topic: str, *assignment: str) -> None:
        """Partitions by their replicas, such as 1:2:3; then everybody is in sync."""
        self("TopicCommand", "--create", "--topic", topic, "--replica-assignment", ",".join(assignment))
        wanted = [sorted(map(int, each.split(":"))) for each in assignment]
        eventually(lambda: [sorted(self._kafka.in_sync(topic, p)) for p in range(len(wanted))] == wanted)
        eventually(lambda: all(self._kafka.leader_of(topic, seen_by=node) != -1 for node in self._kafka.running))


@pytest.fixture
def shell(java_tools: Tools, kafka: Cluster) -> Shell:
    return Shell(java_tools, kafka)


def test_kafka_metadata_quorum(shell: Shell, kafka: Cluster) -> None:
    status = dict(re.findall(r"^(\w+): +(.*)$", shell("MetadataQuorumCommand", "describe", "--status"), re.MULTILINE))
    assert int(status["LeaderId"]) == kafka.controller
    assert int(status["LeaderEpoch"]) >= 1 and int(status["HighWatermark"]) > 0
    assert sorted(re.findall(r'"id": (\d)', status["CurrentVoters"])) == ["1", "2", "3"]

    rows = shell("MetadataQuorumCommand", "describe", "--replication").splitlines()[1:]
    roles = {int(row.split()[0]): row.split()[-1] for row in rows}
    assert roles == {node_id: "Leader" if node_id == kafka.controller else "Follower" for node_id in (1, 2, 3)}


def test_kafka_topics_tells_who_is_behind(shell: Shell, kafka: Cluster, topic: str) -> None:
    create = ("--create", "--topic", topic, "--partitions", "3", "--replication-factor", "3")
    assert f"Created topic {topic}." in shell("TopicCommand", *create)
    described = shell("TopicCommand", "--describe", "--topic", topic)
    assert "PartitionCount: 3\tReplicationFactor: 3" in described
    assert sorted(re.findall(r"Leader: (\d)", described)) == ["1", "2", "3"]
    eventually(lambda: all(len(kafka.in_sync(topic, p)) == 3 for p in range(3)))
    assert topic not in shell("TopicCommand", "--describe", "--under-replicated-partitions")

    kafka.kill(3)
    eventually(lambda: all(sorted(kafka.in_sync(topic, p)) == [1, 2] for p in range(3)))
    behind = shell("TopicCommand", "--describe", "--under-replicated-partitions")
    assert behind.count(f"Topic: {topic}\t") == 3
    assert topic not in shell("TopicCommand", "--describe", "--unavailable-partitions")
    assert topic not in shell("TopicCommand", "--describe", "--under-min-isr-partitions")


def test_kafka_reassign_partitions(shell: Shell, kafka: Cluster, topic: str, tmp_path: Path) -> None:
    shell.create(topic, "1:2", "2:1")
    shell("ConsoleProducer", "--topic", topic, stdin="".join(f"{i}\n" for i in range(100)))
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))

    told = shell(REASSIGN, "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "2,3")
    plan.write_text(told.splitlines()[-1])
    assert {r for each in json.loads(plan.read_text())["partitions"] for r in each["replicas"]} == {2, 3}

    throttled = ("--throttle", "50000000")
    assert "Successfully started partition reassignments" in shell(
        REASSIGN, "--execute", "--reassignment-json-file", str(plan), *throttled
    )
    eventually(lambda: all(sorted(kafka.in_sync(topic, p)) == [2, 3] for p in (0, 1)))
    verified = shell(REASSIGN, "--verify", "--reassignment-json-file", str(plan))
    assert verified.count("is completed.") == 2 and "Clearing topic-level throttles" in verified
    assert shell(REASSIGN, "--list").strip() == "No partition reassignments found."


def test_a_reassignment_that_hangs_is_listed_and_cancelled(
    shell: Shell, kafka: Cluster, topic: str, tmp_path: Path
) -> None:
    stopped = 3 if kafka.controller != 3 else 2
    other = 5 - stopped
    shell.create(topic, f"1:{other}")
    plan = tmp_path / "plan.json"
    wanted = [{"topic": topic, "partition": 0, "replicas": [1, stopped]}]
    plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
    # Not killed: the tool takes only brokers that are there, and the dead are known to be dead at once.
    kafka.pause(stopped)
    shell = shell.through(kafka.controller)
    try:
        shell(REASSIGN, "--execute", "--reassignment-json-file", str(plan))
        hangs = f"{topic}-0: replicas: 1,{stopped},{other}. adding: {stopped}. removing: {other}."
        assert hangs in shell(REASSIGN, "--list")
        # Without the last word the tool goes on to ask the stopped broker for its throttles.
        back = shell(REASSIGN, "--cancel", "--reassignment-json-file", str(plan), "--preserve-throttles")
        assert "Successfully cancelled" in back
        assert f"Topic: {topic}\tPartition: 0\tLeader: 1\tReplicas: 1,{other}" in shell(
            "TopicCommand", "--describe", "--topic", topic
        )
    finally:
        kafka.resume(stopped)


def test_kafka_leader_election(shell: Shell, kafka: Cluster, topic: str) -> None:
    shell.create(topic, "3:1:2")
    kafka.shut_down(3)
    kafka.restart(3)
    eventually(lambda: sorted(kafka.in_sync(topic)) == [1, 2, 3])
    assert kafka.leader_of(topic) != 3
    one = ("--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in shell(
        "LeaderElectionCommand", *one
    )
    eventually(lambda: all(kafka.leader_of(topic, seen_by=node) == 3 for node in kafka.running))
    assert "Valid replica already elected" in shell("LeaderElectionCommand", *one)


def test_kafka_log_dirs(shell: Shell, topic: str) -> None:
    shell.create(topic, "1:2:3")
    report = json.loads(shell("LogDirsCommand", "--describe", "--topic-list", topic).splitlines()[-1])
    assert sorted(broker["broker"] for broker in report["brokers"]) == [1, 2, 3]
    for broker in report["brokers"]:
        ((found,),) = [directory["partitions"] for directory in broker["logDirs"]]
        assert (found["partition"], found["offsetLag"], found["isFuture"]) == (f"{topic}-0", 0, False)


def test_kafka_broker_api_versions(shell: Shell) -> None:
    report = shell("BrokerApiVersionsCommand")
    assert [int(found) for found in re.findall(r"\(id: (\d) rack: null", report)] and report.count(
        "Fetch(1): 4 to 18"
    ) == 3


def test_kafka_cluster(shell: Shell, kafka: Cluster) -> None:
    assert re.fullmatch(r"Cluster ID: \S{22}\s*", shell.last("ClusterTool", "cluster-id"))
    rows = [row.split() for row in shell.last("ClusterTool", "list-endpoints").splitlines()[1:]]
    assert sorted((row[0], row[-2], row[-1]) for row in rows) == [(n, "unfenced", "broker") for n in ("1", "2", "3")]

    kafka.kill(3)
    eventually(lambda: "fenced" in shell.last("ClusterTool", "list-endpoints", "--include-fenced-brokers").split())
    assert "Broker 3 is no longer registered." in shell.last("ClusterTool", "unregister", "--id", "3")
    listed = shell.last("ClusterTool", "list-endpoints", "--include-fenced-brokers").splitlines()[1:]
    assert sorted(row.split()[0] for row in listed) == ["1", "2"]


def test_kafka_consumer_groups_after_the_death_of_a_coordinator(shell: Shell, kafka: Cluster, topic: str) -> None:
    shell.create(topic, "1:2:3")
    shell("ConsoleProducer", "--topic", topic, stdin="a\nb\nc\n")
    group = f"{topic}-group"
    read = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000")
    assert shell(CONSUMER, *read).split() == ["a", "b", "c"]
    state = shell(GROUPS, "--describe", "--group", group, "--state")
    coordinator = int(re.search(r"\((\d)\)", state)[1])  # type: ignore[index]

    kafka.kill(coordinator)
    described = shell(GROUPS, "--describe", "--group", group)
    (row,) = [line.split() for line in described.splitlines() if topic in line and "Consumer group" not in line]
    assert row[1:6] == [topic, "0", "3", "3", "0"]
    moved = int(re.search(r"\((\d)\)", shell(GROUPS, "--describe", "--group", group, "--state"))[1])  # type: ignore[index]
    assert moved != coordinator
    assert group in shell(GROUPS, "--list").split()


def test_java_clients_write_and_read_through_the_death_of_a_leader(shell: Shell, kafka: Cluster, topic: str) -> None:
    shell.create(topic, "2:3:1")
    client = ApacheJava(kafka.bootstrap_servers)
    try:
        first = client.produce(topic, [Given(b"%d" % i) for i in range(100)], idempotent=True)
        kafka.kill(2)
        second = client.produce(topic, [Given(b"%d" % i) for i in range(100, 200)], idempotent=True)
        assert [*first, *second] == list(range(200))
        assert [seen.value for seen in client.consume(topic, 200)] == [b"%d" % i for i in range(200)]
    finally:
        client.close()


def test_dump_log_reads_the_metadata_log_and_snapshots_of_every_node(
    java_tools: Tools, shell: Shell, kafka: Cluster, data: Path, topic: str, tmp_path: Path
) -> None:
    for i in range(4):  # enough for a snapshot
        shell("TopicCommand", "--create", "--topic", f"{topic}-{i}", "--partitions", "30", "--replication-factor", "3")
    eventually(lambda: all(list((data / f"node-{n}").glob("__cluster_metadata-0/*.checkpoint")) for n in (1, 2, 3)))
    shell.create(topic, "1:2:3")
    for node_id in (1, 2, 3):
        copy = tmp_path / f"node-{node_id}"
        # The node lives: what it is about to rename or remove is not looked at.
        passing = shutil.ignore_patterns("*.tmp", "*.part", "*.deleted")
        shutil.copytree(data / f"node-{node_id}" / "__cluster_metadata-0", copy, ignore=passing)
        logs, snapshots = sorted(copy.glob("*.log")), sorted(copy.glob("*.checkpoint"))
        assert snapshots
        told = {
            path: java_tools.must("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(path))
            for path in (*logs, *snapshots)
        }
        assert all("isvalid: false" not in out and "Could not" not in out for out in told.values())
        assert f'"name":"{topic}"' in "".join(told[path] for path in logs)
        assert all("SnapshotHeader" in told[path] and "REGISTER_BROKER_RECORD" in told[path] for path in snapshots)
