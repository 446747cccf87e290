"""From `ottla start …` to the settings of a node."""

from pathlib import Path

import pytest

from ottla.cli.app import run
from ottla.cli.listening import platform_listeners
from ottla.cli.parser import Arguments, UsageError, parse
from ottla.cli.start import COMMANDS, file_settings, node_settings
from ottla.model.properties import Settings, SettingsError


def given(*words: str) -> Arguments:
    return parse(COMMANDS[0], words)


def test_without_anything_a_node_listens_on_loopback_and_keeps_its_data_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = node_settings(given())
    assert settings.log_dirs == (str(tmp_path / "ottla-data"),)
    assert [(one.host, one.port) for one in settings.listeners] == [("127.0.0.1", 9092), ("127.0.0.1", 9093)]


def test_a_port_moves_the_controller_with_it() -> None:
    settings = node_settings(given("--port", "9192", "--data", "/tmp/second"))
    assert [(one.host, one.port) for one in settings.listeners] == [("127.0.0.1", 9192), ("127.0.0.1", 9193)]
    assert settings.log_dirs == ("/tmp/second",)
    assert [voter.port for voter in settings.voters] == [9193]


def test_every_interface_is_listened_on_but_never_advertised() -> None:
    settings = node_settings(given("--host", "0.0.0.0"))
    assert settings.listeners[0].host == "0.0.0.0"
    assert settings.advertised_listeners[0].host not in ("0.0.0.0", "")


@pytest.mark.parametrize(
    ("secured", "expected"),
    [
        (
            False,
            {"registry": "http://127.0.0.1:8181", "connect": "http://127.0.0.1:8183", "sql": "http://127.0.0.1:8188"},
        ),
        (
            True,
            {
                "registry": "https://127.0.0.1:8181",
                "connect": "https://127.0.0.1:8183",
                "sql": "https://127.0.0.1:8188",
            },
        ),
    ],
)
def test_services_beside_a_secured_node_speak_https(secured: bool, expected: dict[str, str]) -> None:
    settings = Settings.defaults("/tmp/second", **platform_listeners(9192, secured=secured))
    found = {service: settings.get_list(f"{service}.listeners") for service in ("registry", "connect", "sql")}
    assert {service: address for service, (address,) in ((s, a) for s, a in found.items() if a)} == expected


def test_overrides_win() -> None:
    settings = node_settings(given("-o", "num.partitions=6", "-o", "log.retention.ms=1000"))
    assert settings.get_int("num.partitions") == 6
    assert settings.get_int("log.retention.ms") == 1000


def test_a_registry_and_connect_come_along_unless_kafka_alone_is_wanted() -> None:
    beside = node_settings(given("--port", "9192"))
    assert beside.get_list("registry.listeners") == ("http://127.0.0.1:8181",)
    assert beside.get_list("connect.listeners") == ("http://127.0.0.1:8183",)
    alone = node_settings(given("--port", "9192", "--only", "kafka"))
    assert [alone.get_list(f"{name}.listeners") for name in ("registry", "connect", "sql")] == [(), (), ()]
    with pytest.raises(UsageError, match="kafka is what can be started alone"):
        node_settings(given("--only", "registry"))


SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=7
listeners=PLAINTEXT://127.0.0.1:19392,CONTROLLER://127.0.0.1:19393
controller.listener.names=CONTROLLER
controller.quorum.voters=7@127.0.0.1:19393
log.dirs=/tmp/from-the-file
num.partitions=2
"""


def test_kafkas_file_is_taken_as_it_is_and_overrides_win_over_it(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(SERVER_PROPERTIES)
    settings = file_settings(given(str(path)), str(path))
    assert (settings.node_id, settings.log_dirs, settings.get_int("num.partitions")) == (7, ("/tmp/from-the-file",), 2)
    words = (str(path), "--data", "/tmp/elsewhere", "--override", "num.partitions=5")
    settings = file_settings(given(*words), str(path))
    assert (settings.log_dirs, settings.get_int("num.partitions")) == (("/tmp/elsewhere",), 5)


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1"])
def test_a_file_may_be_written_as_java_reads_it_or_as_people_write_it(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"# fürs Büro{SERVER_PROPERTIES}broker.rack=Küche\n", encoding=encoding)
    assert file_settings(given(str(path)), str(path)).find_str("broker.rack") == "Küche"


def test_port_and_file_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(SERVER_PROPERTIES)
    with pytest.raises(UsageError, match=r"--port: .* says where to listen"):
        file_settings(given(str(path), "--port", "1"), str(path))


def test_bad_settings_are_all_named_and_nothing_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.properties"
    path.write_text(SERVER_PROPERTIES + "num.partitons=3\nlog.segment.bytes=many\n")
    assert run(["start", str(path)]) == 1
    shown = capsys.readouterr().err
    assert f"ottla: {path} cannot be used:" in shown
    assert "num.partitons" in shown
    assert "num.partitions" in shown
    assert "log.segment.bytes" in shown


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["start", "/nonexistent/server.properties"]) == 1
    assert capsys.readouterr().err == "ottla: /nonexistent/server.properties: no such file or directory\n"


def test_a_port_out_of_range_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["start", "--port", "65535"]) == 2
    assert "the controller takes the next one" in capsys.readouterr().err


def test_secrets_of_a_nodes_file_may_stand_in_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's three providers, as its own brokers have them (KIP-421)."""
    (tmp_path / "secrets.properties").write_text("store=hush\n")
    (tmp_path / "rack").write_text("r7")
    monkeypatch.setenv("NODE_PARTITIONS", "5")
    package = "org.apache.kafka.common.config.provider"
    file = tmp_path / "server.properties"
    lines = (
        "config.providers=file,directory,env",
        f"config.providers.file.class={package}.FileConfigProvider",
        f"config.providers.directory.class={package}.DirectoryConfigProvider",
        f"config.providers.env.class={package}.EnvVarConfigProvider",
        f"ssl.key.password=${{file:{tmp_path}/secrets.properties:store}}",
        f"broker.rack=${{directory:{tmp_path}:rack}}",
        "num.partitions=${env:NODE_PARTITIONS}",
        *(f"{name}={text}" for name, text in KRAFT.items()),
    )
    file.write_text("\n".join(lines))
    settings = file_settings(given(), str(file))
    assert [settings[name] for name in ("ssl.key.password", "broker.rack", "num.partitions")] == ["hush", "r7", 5]
    file.write_text("\n".join((*lines, "log.dir=${env:NOWHERE}")))
    with pytest.raises(SettingsError, match=r"config\.providers: env has no NOWHERE"):
        file_settings(given(), str(file))
    file.write_text("\n".join((*lines, "config.providers.env.class=com.example.Vault")))
    with pytest.raises(SettingsError, match="no provider of this name: there are FileConfigProvider"):
        file_settings(given(), str(file))


KRAFT = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
}
