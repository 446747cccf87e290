"""Apache's own command line tools against the node: what a Kafka user types keeps working."""

import json
import re
from pathlib import Path

import pytest

from tests.support.jvm import Tools, run_alone

pytestmark = pytest.mark.jvm

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONFIGS = "kafka.admin.ConfigCommand"


class Shell:
    """The tools with the node's address filled in."""

    def __init__(self, tools: Tools, bootstrap: str) -> None:
        self._tools = tools
        self.bootstrap = bootstrap

    def __call__(self, tool: str, *args: str, stdin: str = "") -> str:
        return self._tools.must(tool, "--bootstrap-server", self.bootstrap, *args, stdin=stdin)

    def fails(self, tool: str, *args: str) -> str:
        answer = self._tools.run(tool, "--bootstrap-server", self.bootstrap, *args)
        assert answer.code != 0, answer.out
        return answer.out + answer.err

    def plain(self, tool: str, *args: str) -> str:
        return self._tools.must(tool, *args)


@pytest.fixture
def shell(java_tools: Tools, bootstrap: str) -> Shell:
    return Shell(java_tools, bootstrap)


def consumed(shell: Shell, topic: str, partition: int, count: int, *more: str) -> list[str]:
    place = ("--topic", topic, "--partition", str(partition), "--max-messages", str(count), "--timeout-ms", "60000")
    return shell(CONSOLE_CONSUMER, *place, *(more or ("--offset", "earliest"))).splitlines()


def test_kafka_topics(shell: Shell, topic: str) -> None:
    created = shell("TopicCommand", "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=60000")
    assert f"Created topic {topic}." in created
    assert topic in shell("TopicCommand", "--list").splitlines()

    described = shell("TopicCommand", "--describe", "--topic", topic)
    assert re.search(
        rf"Topic: {topic}\tTopicId: \S{{22}}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: ", described
    )
    assert "retention.ms=60000" in described
    for partition in range(3):
        assert f"\tTopic: {topic}\tPartition: {partition}\tLeader: 1\tReplicas: 1\tIsr: 1" in described

    assert "already exists" in shell.fails("TopicCommand", "--create", "--topic", topic)
    shell("TopicCommand", "--create", "--if-not-exists", "--topic", topic)
    shell("TopicCommand", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in shell("TopicCommand", "--describe", "--topic", topic)
    assert shell("TopicCommand", "--describe", "--under-replicated-partitions") == ""
    assert shell("TopicCommand", "--describe", "--unavailable-partitions") == ""
    assert "eplication factor" in shell.fails(
        "TopicCommand", "--create", "--topic", f"{topic}-3", "--replication-factor", "3"
    )

    shell("TopicCommand", "--delete", "--topic", topic)
    assert topic not in shell("TopicCommand", "--list").splitlines()
    assert "does not exist" in shell.fails("TopicCommand", "--describe", "--topic", topic)


def test_kafka_configs(shell: Shell, topic: str) -> None:
    shell("TopicCommand", "--create", "--topic", topic, "--partitions", "1")
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    shell(CONFIGS, *of_topic, "--alter", "--add-config", "cleanup.policy=[compact,delete],retention.ms=5000")

    described = shell(CONFIGS, *of_topic, "--describe")
    assert "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:" in described
    assert "  retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000" in described

    shell(CONFIGS, *of_topic, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in shell(CONFIGS, *of_topic, "--describe")
    assert "  retention.ms=604800000 " in shell(CONFIGS, *of_topic, "--describe", "--all")
    assert "retention.ms" in shell.fails(CONFIGS, *of_topic, "--alter", "--add-config", "retention.ms=never")


def test_kafka_configs_changes_the_levels_of_loggers(shell: Shell) -> None:
    of_loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    assert "  root=" in shell(CONFIGS, *of_loggers, "--describe")
    shell(CONFIGS, *of_loggers, "--alter", "--add-config", "ottla.broker.front.session=ERROR")
    assert "  ottla.broker.front.session=ERROR sensitive=false" in shell(CONFIGS, *of_loggers, "--describe")
    shell(CONFIGS, *of_loggers, "--alter", "--delete-config", "ottla.broker.front.session")
    assert "ottla.broker.front.session=ERROR" not in shell(CONFIGS, *of_loggers, "--describe")


def test_kafka_configs_of_brokers(shell: Shell) -> None:
    of_broker = ("--entity-type", "brokers", "--entity-name", "1")
    of_all = ("--entity-type", "brokers", "--entity-default")

    everything = shell(CONFIGS, *of_broker, "--describe", "--all").splitlines()
    assert len(everything) > 250
    assert any(line.startswith("  num.network.threads=3 sensitive=false") for line in everything)

    shell(CONFIGS, *of_all, "--alter", "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2" in shell(CONFIGS, *of_all, "--describe")
    shell(CONFIGS, *of_broker, "--alter", "--add-config", "log.cleaner.threads=1")
    assert "DYNAMIC_BROKER_CONFIG:log.cleaner.threads=1" in shell(CONFIGS, *of_broker, "--describe")
    shell(CONFIGS, *of_broker, "--alter", "--delete-config", "log.cleaner.threads")
    shell(CONFIGS, *of_all, "--alter", "--delete-config", "log.cleaner.threads")
    assert "node.id" in shell.fails(CONFIGS, *of_broker, "--alter", "--add-config", "node.id=7")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer(shell: Shell, topic: str, codec: str) -> None:
    shell("TopicCommand", "--create", "--topic", topic, "--partitions", "1")
    properties = [word for p in ("parse.key=true", "key.separator=:") for word in ("--reader-property", p)]
    lines = [f"key {i}:value {i}" for i in range(50)]

    shell("ConsoleProducer", "--topic", topic, "--compression-codec", codec, *properties, stdin="\n".join(lines) + "\n")

    shown = (
        "--offset",
        "earliest",
        "--formatter-property",
        "print.key=true",
        "--formatter-property",
        "key.separator=:",
    )
    assert consumed(shell, topic, 0, 50, *shown) == lines
    assert consumed(shell, topic, 0, 2, "--offset", "48") == ["value 48", "value 49"]


def test_console_producer_without_acks(shell: Shell, topic: str) -> None:
    shell("TopicCommand", "--create", "--topic", topic, "--partitions", "1")

    shell("ConsoleProducer", "--topic", topic, "--request-required-acks", "0", stdin="a\nb\n")

    assert consumed(shell, topic, 0, 2) == ["a", "b"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_producer_and_consumer_performance(shell: Shell, topic: str, protocol: str) -> None:
    shell("TopicCommand", "--create", "--topic", topic, "--partitions", "6")

    load = ("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    report = shell("ProducerPerformance", *load)

    assert report.splitlines()[-1].startswith("20000 records sent")
    ends = dict(line.rsplit(":", 1) for line in shell("GetOffsetShell", "--topic", topic).splitlines())
    assert sum(map(int, ends.values())) == 20_000

    taken = ("--topic", topic, "--group", f"{topic}-group", "--num-records", "20000", "--timeout", "60000")
    *_, report = shell("ConsumerPerformance", *taken, "--command-property", f"group.protocol={protocol}").splitlines()
    assert report.split(", ")[4] == "20000"


def test_end_to_end_latency(shell: Shell, topic: str) -> None:
    load = ("--num-records", "200", "--record-size", "100", "--record-key-size", "10", "--producer-acks", "all")
    headers = ("--num-headers", "2", "--record-header-key-size", "5", "--record-header-size", "20")
    report = shell("EndToEndLatency", "--topic", topic, *load, *headers)

    assert re.search(r"^Avg latency: \d+\.\d+ ms$", report, re.MULTILINE)
    assert re.search(r"^Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+$", report, re.MULTILINE)


def test_verifiable_producer(shell: Shell, topic: str) -> None:
    shell("TopicCommand", "--create", "--topic", topic, "--partitions", "1")

    work = ("--bootstrap-server", shell.bootstrap, "--topic", topic, "--max-messages", "500")
    told = [json.loads(line) for line in run_alone("org.apache.kafka.tools.VerifiableProducer", *work).splitlines()]

    acked = [event for event in told if event["name"] == "producer_send_success"]
    assert [event["offset"] for event in acked] == list(range(500))
    assert told[-1]["name"] == "tool_data" and (told[-1]["sent"], told[-1]["acked"]) == (500, 500)
    assert consumed(shell, topic, 0, 500) == [str(i) for i in range(500)]


def test_get_offsets_and_delete_records(shell: Shell, topic: str, tmp_path: Path) -> None:
    shell("TopicCommand", "--create", "--topic", topic, "--partitions", "1")
    shell("ConsoleProducer", "--topic", topic, stdin="".join(f"{i}\n" for i in range(10)))
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]}))

    assert f"partition: {topic}-0\tlow_watermark: 4" in shell("DeleteRecordsCommand", "--offset-json-file", str(wanted))

    def offset(*time: str) -> str:
        return shell("GetOffsetShell", "--topic", topic, *time).strip()

    assert offset() == offset("--time", "latest") == f"{topic}:0:10"
    assert offset("--time", "earliest") == f"{topic}:0:4"
    assert re.fullmatch(rf"{topic}:0:\d", offset("--time", "max-timestamp"))  # several share the last millisecond
    assert offset("--time", "0") == f"{topic}:0:4"
    assert consumed(shell, topic, 0, 6) == ["4", "5", "6", "7", "8", "9"]


def test_kafka_log_dirs(shell: Shell, topic: str) -> None:
    shell("TopicCommand", "--create", "--topic", topic, "--partitions", "2")

    report = json.loads(shell("LogDirsCommand", "--describe", "--topic-list", topic).splitlines()[-1])

    ((directory,),) = [broker["logDirs"] for broker in report["brokers"]]
    assert directory["error"] is None
    assert {(p["partition"], p["size"], p["isFuture"]) for p in directory["partitions"]} == {
        (f"{topic}-0", 0, False),
        (f"{topic}-1", 0, False),
    }


def test_kafka_broker_api_versions(shell: Shell) -> None:
    report = shell("BrokerApiVersionsCommand")

    assert "Produce(0): 0 to 13 [usable: 13]" in report
    assert "Fetch(1): 4 to 18 [usable: 18]" in report
    assert "DescribeTopicPartitions(75): 0 [usable: 0]" in report


def test_kafka_metadata_quorum(shell: Shell) -> None:
    status = dict(re.findall(r"^(\w+): +(.*)$", shell("MetadataQuorumCommand", "describe", "--status"), re.MULTILINE))
    assert (status["LeaderId"], status["MaxFollowerLag"]) == ("1", "0")
    assert int(status["HighWatermark"]) > 0

    (replica,) = shell("MetadataQuorumCommand", "describe", "--replication").splitlines()[1:]
    assert replica.split()[0] == "1" and replica.split()[-1] == "Leader"


def test_kafka_features(shell: Shell) -> None:
    lines = shell("FeatureCommand", "describe").splitlines()

    levels = {line.split()[1]: re.search(r"FinalizedVersionLevel: (\S+)", line)[1] for line in lines}  # type: ignore[index]
    assert levels["metadata.version"] == "4.3-IV0"
    assert levels["transaction.version"] == "2"
    assert levels["group.version"] == "1"
    assert "share.version" not in levels


def test_kafka_cluster(shell: Shell) -> None:
    told = shell.plain("ClusterTool", "cluster-id", "--bootstrap-server", shell.bootstrap)
    assert re.fullmatch(r"Cluster ID: \S{22}\s*", told)

    (_, endpoint) = shell.plain("ClusterTool", "list-endpoints", "--bootstrap-server", shell.bootstrap).splitlines()
    assert endpoint.split() == ["1", *shell.bootstrap.split(":"), "null", "unfenced", "broker"]
