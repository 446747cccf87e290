"""The command line against three nodes: what an operator types, and what they see when nodes come and go."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from ottla.cli.app import run
from ottla.testing import Cluster
from tests.support.patience import PATIENCE_SECONDS, eventually

NewTopicName = Callable[[], str]
DEADLINE_SECONDS = PATIENCE_SECONDS


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(3, auto_leader_rebalance_enable=False) as cluster:
        yield cluster


class Shell:
    """Runs commands in this process. Any node may answer: what one has done, another may not have heard of yet."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *words: str, ends: int = 0) -> str:
        """Standard output and error together, once the exit code is the one expected."""
        self._capture.readouterr()
        code = run(words)
        captured = self._capture.readouterr()
        assert code == ends, (words, captured.out, captured.err)
        return captured.out + captured.err

    def any(self, *words: str) -> str:
        """Standard output, whatever the exit code is."""
        self._capture.readouterr()
        run(words)
        return self._capture.readouterr().out

    def json(self, *words: str, ends: int = 0) -> Any:
        self._capture.readouterr()
        code = run([*words, "--json"])
        captured = self._capture.readouterr()
        assert code == ends, (words, captured.out, captured.err)
        return json.loads(captured.out)

    def create(self, kafka: Cluster, topic: str, *words: str) -> None:
        """Returns when every node knows the topic."""
        self("topics", "create", topic, *words)
        eventually(lambda: all(kafka.leader_of(topic, seen_by=node) != -1 for node in kafka.running))

    def until_healthy(self) -> None:
        eventually(lambda: run(["cluster", "status"]) == 0)
        self._capture.readouterr()


@pytest.fixture
def ottla(kafka: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Every node is up and in sync when a test begins."""
    for node_id in (1, 2, 3):
        kafka.resume(node_id)
        if node_id not in kafka.running:
            kafka.restart(node_id)
    monkeypatch.setenv("OTTLA_BOOTSTRAP", kafka.bootstrap_servers)
    shell = Shell(capsys)
    shell.until_healthy()
    return shell


def replicas(ottla: Shell, topic: str) -> list[list[int]]:
    (described,) = ottla.json("topics", "describe", topic)
    return [partition["replicas"] for partition in described["partitions"]]


# ---- ottla cluster status


def test_status_of_a_healthy_cluster(ottla: Shell, kafka: Cluster, topic: str) -> None:
    ottla.create(kafka, topic, "--partitions", "3")
    shown = ottla("cluster", "status")
    assert re.search(rf"^controller +{kafka.controller} of 1, 2, 3 \(epoch \d+\)$", shown, re.MULTILINE)
    assert re.search(r"^offline +none$", shown, re.MULTILINE)
    assert re.search(r"^under-replicated +none$", shown, re.MULTILINE)
    told = ottla.json("cluster", "status")
    assert [(b["broker"], b["state"], b["in_sync"] == b["replicas"] >= 3) for b in told["brokers"]] == [
        (broker, "up", True) for broker in (1, 2, 3)
    ]
    assert (told["offline"], told["under_replicated"], told["voters"]) == ([], [], [1, 2, 3])
    assert sum(b["leads"] for b in told["brokers"]) == told["partitions"]


def test_status_names_what_suffers_when_a_node_is_lost(ottla: Shell, kafka: Cluster, topic: str) -> None:
    ottla.create(kafka, topic, "--assignment", "1:2:3,2:3:1")
    ottla.create(kafka, f"{topic}-single", "--assignment", "3")
    kafka.kill(3)
    eventually(lambda: kafka.leader_of(f"{topic}-single") == -1 and kafka.in_sync(topic) == [1, 2])
    told = ottla.json("cluster", "status", ends=1)
    # Other tests of this cluster may have left topics that suffer too.
    assert [name for name in told["offline"] if name.startswith(topic)] == [f"{topic}-single-0"]
    assert {f"{topic}-0", f"{topic}-1"} <= set(told["under_replicated"])
    assert [b["state"] for b in told["brokers"]] == ["up", "up", "fenced"]
    assert re.search(rf"^offline +\d+: .*{topic}-single-0", ottla("cluster", "status", ends=1), re.MULTILINE)
    kafka.restart(3)
    ottla.until_healthy()
    ottla("topics", "delete", f"{topic}-single")


def test_status_still_shows_the_brokers_when_nobody_leads_the_quorum(ottla: Shell, kafka: Cluster) -> None:
    kafka.kill(2)
    kafka.kill(3)
    # A leader that is left alone finds out within the fetch timeout.
    eventually(lambda: "controller        none: a majority" in ottla.any("cluster", "status", "--timeout", "1"))
    shown = ottla("cluster", "status", "--timeout", "1", ends=1)
    assert re.search(r"^ +1  127\.0\.0\.1:\d+", shown, re.MULTILINE)


# ---- ottla quorum


def caught_up(told: Any) -> bool:
    return all(each["log_end"] >= told["high_watermark"] - 1 for each in told["replicas"])


def test_quorum_status(ottla: Shell, kafka: Cluster) -> None:
    told = ottla.json("quorum", "status")
    assert told["leader"] == kafka.controller
    assert [each["id"] for each in told["replicas"]] == [1, 2, 3]
    assert sorted(each["role"] for each in told["replicas"]) == ["leader", "voter", "voter"]
    eventually(lambda: caught_up(ottla.json("quorum", "status")), "every voter has what is committed")
    assert f"leader          {kafka.controller}\n" in ottla("quorum", "status")


def test_fixed_voters_are_not_changed_and_the_refusal_says_what_does_it(ottla: Shell) -> None:
    directory = "pHT3vbqKRtWWIYTL8gw1Kg"
    for words in (("add", "4", directory, "--endpoint", "CONTROLLER://127.0.0.1:1"), ("remove", "3", directory)):
        shown = ottla("quorum", *words, ends=1)
        assert "the voters are fixed (UNSUPPORTED_VERSION)\n  they change with controller.quorum.voters" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "4"), "--endpoint is missing: the controller listener of node 4, as CONTROLLER://host:9093"),
        (("add", "four", "--endpoint", "CONTROLLER://c4:9093"), "'four': the id of a controller is a number"),
        (("add", "4", "--endpoint", "c4:9093"), "'c4:9093' is no endpoint: NAME://HOST:PORT is expected"),
        (("add", "4", "no-uuid!", "--endpoint", "CONTROLLER://c4:9093"), "`ottla quorum status` shows it"),
        (("remove",), "ID is missing"),
    ],
)
def test_wrong_usage_of_quorum_says_what_is_right(ottla: Shell, words: tuple[str, ...], message: str) -> None:
    assert message in ottla("quorum", *words, ends=2)


def test_a_controller_that_nobody_has_seen_can_neither_come_nor_go(ottla: Shell) -> None:
    added = ottla("quorum", "add", "4", "--endpoint", "CONTROLLER://c4:9093", ends=1)
    assert "controller 4 does not follow the metadata log yet: start it" in added
    assert "controller 2 votes already" in ottla("quorum", "add", "2", "--endpoint", "CONTROLLER://c2:9093", ends=1)
    assert "controller 4 does not vote" in ottla("quorum", "remove", "4", ends=1)


# ---- ottla configs


def described(ottla: Shell, broker: str) -> dict[str, str]:
    """The broker itself is asked, and learns of the change a moment after the controller."""
    return {entry["name"]: entry["value"] for entry in ottla.json("configs", "describe", "broker", broker)}


def test_a_setting_of_one_broker_is_changed_by_way_of_that_broker(ottla: Shell) -> None:
    for broker in ("1", "2", "3"):
        ottla("configs", "set", "broker", broker, f"log.cleaner.backoff.ms={broker}")
        eventually(lambda: described(ottla, broker) == {"log.cleaner.backoff.ms": broker})  # noqa: B023  at once
        ottla("configs", "delete", "broker", broker, "log.cleaner.backoff.ms")
    assert "the cluster has no such broker; it has 1, 2, 3" in ottla(
        "configs", "set", "broker", "9", "log.cleaner.threads=2", ends=1
    )


# ---- ottla reassign


def test_a_dry_run_shows_the_plan_and_moves_nothing(ottla: Shell, kafka: Cluster, topic: str) -> None:
    ottla.create(kafka, topic, "--assignment", "3:1,3:2")
    before = replicas(ottla, topic)
    shown = ottla("reassign", "move", topic, "--to", "1,2", "--dry-run")
    assert [line.split() for line in shown.splitlines()] == [
        ["TOPIC", "PARTITION", "FROM", "TO"],
        [topic, "0", "3,1", "1,2"],
        [topic, "1", "3,2", "2,1"],
    ]
    assert replicas(ottla, topic) == before


def test_partitions_move_off_a_broker_with_their_records(
    ottla: Shell, kafka: Cluster, topic: str, tmp_path: Path
) -> None:
    ottla.create(kafka, topic, "--assignment", "3,3")
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{i}\n" for i in range(200)))
    ottla("produce", topic, "--file", str(lines))
    assert "2 of 2 partitions moving\nall have arrived\n" in ottla("reassign", "move", topic, "--to", "1,2", "--wait")
    eventually(lambda: replicas(ottla, topic) == [[1], [2]])
    assert sorted(ottla("consume", topic, "-o", "start", "-e").split(), key=int) == [str(i) for i in range(200)]
    assert ottla("reassign", "move", topic, "--to", "1,2", "--wait") == "nothing has to move\n"


def test_a_topic_gets_more_copies(ottla: Shell, kafka: Cluster, topic: str) -> None:
    ottla.create(kafka, topic, "--partitions", "3", "--replication-factor", "1")
    ottla("reassign", "move", topic, "-r", "3", "--wait")
    eventually(lambda: [sorted(each) for each in replicas(ottla, topic)] == [[1, 2, 3]] * 3)
    ottla.until_healthy()


def test_a_plan_goes_from_dry_run_through_a_file_to_execute(
    ottla: Shell, kafka: Cluster, topic: str, tmp_path: Path
) -> None:
    ottla.create(kafka, topic, "--assignment", "1:2")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(ottla.json("reassign", "move", topic, "--to", "2,3", "--dry-run")))
    shown = ottla("reassign", "execute", str(plan), "--wait")
    assert "1 of 1 partition moving\n" in shown
    eventually(lambda: replicas(ottla, topic) == [[2, 3]])


def test_a_move_with_a_limit_takes_its_time_until_the_limit_is_lifted(
    ottla: Shell, kafka: Cluster, topic: str, tmp_path: Path
) -> None:
    ottla.create(kafka, topic, "--assignment", "1")
    lines = tmp_path / "lines"
    lines.write_text(("x" * 1000 + "\n") * 4000)  # more than what one fetch brings
    ottla("produce", topic, "--file", str(lines))
    told = ottla("reassign", "move", topic, "--to", "2", "--throttle", "1000")
    assert "the throttle stays until `ottla reassign unthrottle`" in told
    assert all(ottla.json("reassign", "status") for _ in range(20))  # without it all is over in a moment
    assert ottla("reassign", "unthrottle", topic) == "replication is not throttled any more\n"
    eventually(lambda: ottla.json("reassign", "status") == [])
    assert ottla("consume", topic, "-o", "start", "-e").count("\n") == 4000
    assert "throttled" not in ottla("configs", "describe", "topic", topic)


def test_status_and_cancel_of_a_move_that_cannot_finish(
    ottla: Shell, kafka: Cluster, topic: str, tmp_path: Path
) -> None:
    ottla.create(kafka, topic, "--assignment", "1:2")
    assert ottla("reassign", "status") == "nothing is moving\n"
    assert ottla("reassign", "cancel") == "nothing is moving\n"
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": [1, 3]}]}))
    kafka.kill(3)  # it cannot catch up, so the move stays under way
    assert ottla("reassign", "execute", str(plan)) == "1 of 1 partition moving\n"
    (moving,) = ottla.json("reassign", "status")
    assert moving == {"topic": topic, "partition": 0, "replicas": "1,3,2", "adding": "3", "removing": "2"}
    assert ottla("reassign", "cancel", "another") == "nothing of another is moving\n"
    assert ottla("reassign", "cancel", topic) == "1 move taken back\n"
    assert ottla("reassign", "status") == "nothing is moving\n"
    eventually(lambda: replicas(ottla, topic) == [[1, 2]])


def test_refusals_of_moves_name_the_partition_and_what_is_wrong(
    ottla: Shell, kafka: Cluster, topic: str, tmp_path: Path
) -> None:
    ottla.create(kafka, topic, "--partitions", "1")
    assert "--to: broker 9 is not up; these are: 1, 2, 3" in ottla("reassign", "move", topic, "--to", "9", ends=2)
    assert "broker ids separated by commas" in ottla("reassign", "move", topic, "--to", "a", ends=2)
    assert f"{topic}-0 would have 3 copies on 2 brokers" in ottla("reassign", "move", topic, "--to", "1,2", ends=2)
    assert "(UNKNOWN_TOPIC_OR_PARTITION)" in ottla("reassign", "move", f"{topic}-no", ends=1)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": [1, 9]}]}))
    assert f"{topic}-0" in ottla("reassign", "execute", str(plan), ends=1)
    plan.write_text("no plan")
    assert "the plan is not what kafka-reassign-partitions writes" in ottla("reassign", "execute", str(plan), ends=2)
    assert "no such file" in ottla("reassign", "execute", str(tmp_path / "none"), ends=1)


# ---- ottla leader-election


def test_the_preferred_leader_leads_again_after_it_was_away(ottla: Shell, kafka: Cluster, topic: str) -> None:
    ottla.create(kafka, topic, "--assignment", "3:1:2,1:2:3")
    assert ottla("leader-election", topic) == "no election was needed\n"
    kafka.shut_down(3)
    shown = ottla("leader-election", topic, "--partition", "0", ends=1)
    assert f"{topic}-0" in shown and "(PREFERRED_LEADER_NOT_AVAILABLE)\n  its broker is down or not in sync" in shown
    kafka.restart(3)
    ottla.until_healthy()
    assert kafka.leader_of(topic) != 3
    assert ottla("leader-election", topic) == "1 leader elected\n"
    eventually(lambda: all(kafka.leader_of(topic, seen_by=node) == 3 for node in kafka.running))
    assert ottla("leader-election", "--all").endswith(("elected\n", "needed\n"))
    assert ottla("leader-election", "--all") == "no election was needed\n"


def test_an_unclean_election_has_to_be_meant(ottla: Shell, kafka: Cluster, topic: str) -> None:
    ottla.create(kafka, topic, "--partitions", "1")
    assert "say --i-accept-data-loss as well" in ottla("leader-election", topic, "--unclean", ends=2)
    assert ottla("leader-election", topic, "--unclean", "--i-accept-data-loss") == "no election was needed\n"


def test_wrong_usage_of_leader_election_says_what_is_right(ottla: Shell, kafka: Cluster, topic: str) -> None:
    ottla.create(kafka, topic, "--partitions", "2")
    assert "name topics, or say --all" in ottla("leader-election", ends=2)
    assert "name topics, or say --all" in ottla("leader-election", topic, "--all", ends=2)
    assert "--partition: name the topic" in ottla("leader-election", "--all", "--partition", "1", ends=2)
    shown = ottla("leader-election", topic, "--partition", "7", ends=1)
    assert f"{topic} has no partition 7: it has 2 partitions, from 0 on" in shown


# ---- ottla start --nodes 3


def six_free_ports() -> int:
    """The first of six neighbours."""
    for first in range(20_000 + os.getpid() % 10_000, 60_000, 6):
        taken: list[socket.socket] = []
        try:
            taken += [socket.create_server(("127.0.0.1", first + i)) for i in range(6)]
        except OSError:
            continue
        finally:
            for each in taken:
                each.close()
        return first
    raise AssertionError("no six neighbouring ports are free")


class Started:
    """`ottla start --nodes 3` as a process."""

    def __init__(self, data: Path, port: int) -> None:
        self.err = data.with_suffix(".err")
        with self.err.open("wb") as err:
            command = [sys.executable, "-m", "ottla", "start", "--nodes", "3", "--port", str(port), "--data", str(data)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True)
        assert self.process.stdout is not None
        self.banner = [self.process.stdout.readline().rstrip("\n") for _ in range(11)]

    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGTERM)

    def end(self, how: signal.Signals) -> int:
        """The exit code. Every node is gone then."""
        children = self.children()
        self.process.send_signal(how)
        self.process.communicate(timeout=DEADLINE_SECONDS)
        assert not any(Path(f"/proc/{child}").exists() for child in children)
        return self.process.returncode


def test_three_nodes_start_with_one_command_and_stop_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = six_free_ports()
    addresses = [f"127.0.0.1:{port + step}" for step in (0, 2, 4)]
    metrics = [f"http://127.0.0.1:{port + 9404 - 9092 + step}" for step in (0, 1, 2)]
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ",".join(addresses))
    ottla = Shell(capsys)
    with Started(tmp_path / "data", port) as first:
        assert re.fullmatch(r"ottla \S+: 3 nodes are ready", first.banner[0])
        assert first.banner[1:] == [
            f"  kafka    {','.join(addresses)}",
            *(
                f"  node {number}   {address}  process {child}"
                for number, (address, child) in enumerate(zip(addresses, first.children(), strict=True), start=1)
            ),
            f"  metrics  {', '.join(metrics)}",
            f"  registry http://127.0.0.1:{port + 8081 - 9092}",
            f"  connect  http://127.0.0.1:{port + 8083 - 9092}",
            f"  sql      http://127.0.0.1:{port + 8088 - 9092}",
            f"  data     {tmp_path / 'data'}",
            "  stop with Ctrl-C",
        ]
        created = ottla("topics", "create", "orders", "--partitions", "3")
        assert created == "created orders (3 partitions, 3 replicas)\n"
        ottla.until_healthy()
        victim = first.children()[1]
        os.kill(victim, signal.SIGKILL)
        file = tmp_path / "data" / "node-2.properties"
        told = (
            f"ottla: node 2 (process {victim}) was ended by signal 9; 2 nodes left\n"
            f"  bring it back from another terminal: ottla start {file}\n"
        )
        eventually(lambda: told in first.err.read_text())
        eventually(lambda: run(["cluster", "status"]) == 1)
        assert [b["state"] for b in ottla.json("cluster", "status", ends=1)["brokers"]] == ["up", "fenced", "up"]
        with subprocess.Popen(
            [sys.executable, "-m", "ottla", "start", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as brought_back:
            ottla.until_healthy()
            brought_back.terminate()
        assert first.end(signal.SIGTERM) == 0
    with Started(tmp_path / "data", port) as again:
        ottla.until_healthy()
        assert ottla("topics", "list", "--names") == "orders\n"
        assert again.end(signal.SIGHUP) == 0  # the terminal is closed
    warned = [line for line in again.err.read_text().splitlines() if " WARN " in line]
    # It was a healthy start and a healthy stop; but on a busy machine a node may be slow enough to be fenced.
    assert [line for line in warned if "fenced" not in line] == []
    assert "Traceback" not in first.err.read_text() + again.err.read_text()


def test_three_nodes_that_stop_at_once_do_not_complain_that_the_controller_is_gone(tmp_path: Path) -> None:
    with Started(tmp_path / "data", six_free_ports()) as cluster:
        for child in cluster.children():
            os.kill(child, signal.SIGTERM)
        cluster.process.communicate(timeout=DEADLINE_SECONDS)
    assert cluster.process.returncode == 1  # nobody has asked the command itself to stop
    said = cluster.err.read_text()
    assert [line for line in said.splitlines() if " WARN " in line and "let this broker go" in line] == []
    assert said.count("has ended with code 0") == 3


def test_nodes_end_in_good_order_with_the_command_that_started_them_even_by_kill_nine(tmp_path: Path) -> None:
    with Started(tmp_path / "data", six_free_ports()) as cluster:
        children = cluster.children()
        cluster.process.kill()
        cluster.process.communicate(timeout=DEADLINE_SECONDS)
    eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    assert cluster.err.read_text().count("stopping: the process that started this node is gone") == 3
    assert all((tmp_path / "data" / f"node-{number}" / ".kafka_cleanshutdown").exists() for number in (1, 2, 3))


@pytest.mark.parametrize("taken", [0, 2, 3])
def test_a_port_that_is_taken_is_told_before_anything_starts(tmp_path: Path, taken: int) -> None:
    """A controller's as well as a broker's; whoever answers there must not be taken for the node."""
    port = six_free_ports()
    with socket.create_server(("127.0.0.1", port + taken)):
        command = [sys.executable, "-m", "ottla", "start", "--nodes", "3", "--port", str(port)]
        done = subprocess.run(
            [*command, "--data", str(tmp_path / "data")], capture_output=True, text=True, check=False, timeout=60
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"ottla: node {taken // 2 + 1} cannot listen on 127.0.0.1:{port + taken}: another process does. "
        "Stop it, or choose another port with --port N"
    )
    assert not (tmp_path / "data").exists()
