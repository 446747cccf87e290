"""`ottla start --nodes N`: the settings of each node, and which directories it takes."""

from pathlib import Path

import pytest

from ottla.cli.app import run
from ottla.cli.failures import Failure
from ottla.cli.nodes import check_data, cluster_of, plan
from ottla.cli.parser import UsageError
from ottla.model.properties import Settings


def test_three_nodes_on_neighbouring_ports_name_one_quorum() -> None:
    plans = plan(3, "127.0.0.1", 9092, "/data", {})
    nodes = [Settings.defaults(each.data, **each.settings) for each in plans]
    assert [node.node_id for node in nodes] == [1, 2, 3]
    assert [node.log_dirs for node in nodes] == [("/data/node-1",), ("/data/node-2",), ("/data/node-3",)]
    assert [[each.port for each in node.listeners] for node in nodes] == [[9092, 9093], [9094, 9095], [9096, 9097]]
    assert {node.voters for node in nodes} == {nodes[0].voters}
    assert [(voter.id, voter.host, voter.port) for voter in nodes[0].voters] == [
        (1, "127.0.0.1", 9093),
        (2, "127.0.0.1", 9095),
        (3, "127.0.0.1", 9097),
    ]


@pytest.mark.parametrize(("count", "copies", "in_sync"), [(2, "2", "2"), (3, "3", "2"), (5, "3", "2")])
def test_as_many_copies_as_make_sense_and_a_majority_of_them_in_sync(count: int, copies: str, in_sync: str) -> None:
    shared = plan(count, "127.0.0.1", 9092, "/data", {})[0].settings
    assert (shared["default.replication.factor"], shared["min.insync.replicas"]) == (copies, in_sync)
    assert shared["offsets.topic.replication.factor"] == shared["transaction.state.log.replication.factor"] == copies


def test_overrides_are_for_all_nodes_and_win() -> None:
    plans = plan(3, "127.0.0.1", 9092, "/data", {"min.insync.replicas": "1"})
    assert [each.settings["min.insync.replicas"] for each in plans] == ["1", "1", "1"]


def test_every_interface_is_listened_on_but_never_advertised() -> None:
    for each in plan(3, "0.0.0.0", 9092, "/data", {}):
        settings = Settings.defaults(each.data, **each.settings)
        assert settings.listeners[0].host == "0.0.0.0"
        assert settings.advertised_listeners[0].host not in ("0.0.0.0", "")
        assert settings.advertised_listeners[0].port == each.port


@pytest.mark.parametrize("name", ["node.id", "listeners", "log.dirs", "controller.quorum.voters", "process.roles"])
def test_what_makes_a_node_this_node_cannot_be_overridden_for_all(name: str) -> None:
    with pytest.raises(UsageError, match=f"-o {name}: --nodes decides it"):
        plan(3, "127.0.0.1", 9092, "/data", {name: "1"})


@pytest.mark.parametrize("port", [0, 65531, 70000])
def test_there_must_be_room_for_every_port(port: int) -> None:
    with pytest.raises(UsageError, match=f"--port {port}: 3 nodes take 6 ports from there on"):
        plan(3, "127.0.0.1", port, "/data", {})


def test_a_directory_keeps_the_number_of_nodes_it_was_made_with(tmp_path: Path) -> None:
    check_data(str(tmp_path), 3)
    for node in ("node-1", "node-2", "node-3"):
        (tmp_path / node).mkdir()
        (tmp_path / node / "meta.properties").touch()
    check_data(str(tmp_path), 3)
    with pytest.raises(Failure, match="holds a cluster of 3 nodes: start it with --nodes 3"):
        check_data(str(tmp_path), 5)


def test_a_single_nodes_directory_is_not_shared_with_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "meta.properties").touch()
    with pytest.raises(Failure, match="holds the data of a single node"):
        check_data(str(tmp_path), 3)
    (tmp_path / "three" / "node-1").mkdir(parents=True)
    (tmp_path / "three" / "node-1" / "meta.properties").touch()
    assert run(["start", "--data", str(tmp_path / "three")]) == 1
    again = f"start it with --nodes 1 --data {tmp_path / 'three'}"
    assert f"holds a cluster of several nodes: {again}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nodes", "0"], "--nodes 0: 1 to 9"),
        (["--nodes", "3", "server.properties"], "--nodes: a file describes one node"),
        (["--nodes", "3", "--port", "65535"], "3 nodes take 6 ports"),
    ],
)
def test_wrong_usage_says_what_is_right(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["start", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_setting_is_told_once_and_nothing_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["start", "--nodes", "3", "--data", str(tmp_path / "d"), "-o", "num.partitons=3"]) == 1
    shown = capsys.readouterr().err
    assert shown.count("num.partitons") == 1
    assert "did you mean num.partitions?" in shown
    assert not (tmp_path / "d").exists()


def test_every_new_cluster_has_an_id_of_its_own(tmp_path: Path) -> None:
    assert cluster_of(str(tmp_path / "one"), 3) != cluster_of(str(tmp_path / "another"), 3)


def test_a_cluster_keeps_its_id_though_only_one_node_has_written_it_down(tmp_path: Path) -> None:
    (tmp_path / "node-2").mkdir()
    (tmp_path / "node-2" / "meta.properties").write_text("version=1\ncluster.id=HP-5AI_fdy4nqv_8cw3w3A\nnode.id=2\n")
    assert cluster_of(str(tmp_path), 3) == "HP-5AI_fdy4nqv_8cw3w3A"


def test_a_file_that_names_no_cluster_is_named(tmp_path: Path) -> None:
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "meta.properties").write_text("version=1\n")
    with pytest.raises(Failure, match=r"node-1/meta\.properties: "):
        cluster_of(str(tmp_path), 3)
