"""The page of a node after a little work, as Prometheus gets it: every family with its help, its type and its labels.

Numbers that depend on the machine or the moment are written as `*`.
"""

import re
import urllib.request
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.testing import Cluster
from tests.golden.transcripts import compare

VARIES: Final = re.compile(
    r"process_|python_|kafka_network_|kafka_server_(socket|kafkaserver|kafkarequest|raft|brokermetadata|delayed|fetch)"
    r"|kafka_controller_kafkacontroller_last|kafka_server_brokertopicmetrics_(bytes|total)|kafka_log_log_size"
)
PATIENCE_S: Final = 30.0


def shown(line: str) -> str:
    sample, _, value = line.rpartition(" ")
    sample = re.sub(r'(logDirectory|address|version|patchlevel|minor)="[^"]*"', r'\1="*"', sample)
    return f"{sample} {'*' if VARIES.match(sample) else value}" if not line.startswith("#") else line


def worked(kafka: Cluster) -> None:
    """Three records, of which a group has read two."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 100})
    for value in (b"apples", b"pears", b"plums"):
        producer.produce("orders", value, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "shop", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", 0, 0)])
    assert consumer.consume(1, PATIENCE_S)
    consumer.commit(offsets=[TopicPartition("orders", 0, 2)], asynchronous=False)
    consumer.close()


def test_the_page_of_a_node() -> None:
    with Cluster(http_listeners="http://127.0.0.1:0", num_partitions=1, offsets_topic_num_partitions=1) as kafka:
        worked(kafka)
        with urllib.request.urlopen(f"{kafka.http_address(1)}/metrics", timeout=PATIENCE_S) as reply:
            text = reply.read().decode()
    # Which requests a client sends is its own business, and changes with its version.
    lines = [line for line in text.splitlines() if not line.startswith("kafka_network_requestmetrics_")]
    compare(Path(__file__).with_name("page.txt"), [shown(line) for line in lines])
