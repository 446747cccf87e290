"""From words to an exit code."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest

from ottla.cli.app import run
from ottla.cli.failures import explain
from ottla.cli.tools import TOOLS
from ottla.client.errors import KafkaError, NoSuchPartition, RequestTooLarge
from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.codec import EncodeError


def test_every_tool_and_each_of_its_commands_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for tool, (module, _) in TOOLS.items():
        for command in import_module(module).COMMANDS:
            words = [tool, command.name] if command.name else [tool]
            assert run([*words, "--help"]) == 0
            shown = capsys.readouterr().out
            assert shown.startswith(command.summary)
            assert "examples:" in shown, words


def test_ottla_alone_tells_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    shown = capsys.readouterr().out
    assert all(tool in shown for tool in TOOLS)


def test_help_comes_before_or_after_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    run(["help", "topics", "create"])
    before = capsys.readouterr().out
    run(["topics", "create", "-h"])
    assert capsys.readouterr().out == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["topcs"], "'topcs' is not an ottla command; did you mean topics?"),
        (["topics", "creat"], "did you mean create?"),
        (["topics", "create"], "usage: ottla topics create TOPIC..."),
        (["topics", "list", "--bootstrap", "a:b"], "'a:b' is not an address"),
        (["topics", "list", "--timeout", "soon"], "--timeout soon: a number of seconds is expected"),
        (["consume", "t", "-f", "%z"], "%z in the format means nothing"),
        (["consume", "t", "--from-beginning", "-o", "3", "-b", "127.0.0.1:1"], "exclude each other"),
        (["configs", "describe", "topc", "x"], "'topc' has no settings; did you mean topic?"),
        (["configs", "describe", "orders"], "configs describe: say what orders is: topic orders, group orders or"),
        (["configs", "set", "broker", "one", "a=b"], "a broker goes by its number"),
        (["configs", "set", "topic", "t"], "NAME=VALUE is missing"),
        (["configs", "set", "topic", "t", "retention.ms"], "'retention.ms' is not a setting"),
        (["produce", "t", "-H", "nothing"], "--header nothing: NAME=VALUE is expected"),
    ],
)
def test_wrong_usage_ends_with_2_and_the_way_out(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Try: ottla " in shown.err
    assert shown.out == ""


@contextmanager
def unheard() -> Iterator[str]:
    """An address at which nobody listens, kept from others meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_broker_that_is_not_there_is_told_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with unheard() as address:
        assert run(["topics", "list", "--bootstrap", address]) == 1
    assert capsys.readouterr().err == (
        f"ottla: nothing listens at {address}\n"
        "  start a node with `ottla start`, or name another with --bootstrap HOST:PORT\n"
    )


@pytest.mark.parametrize(
    ("protocol", "wanted"), [("PLAINTEXT", "TLS or a login"), ("SASL_PLAINTEXT", "TLS (SASL_SSL)")]
)
def test_a_listener_of_another_kind_is_a_matter_of_the_clients_settings(
    protocol: str, wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It hangs up at the first bytes, as a listener with TLS does: to start a node would not help."""
    config = tmp_path / "client.properties"
    config.write_text(f"security.protocol={protocol}\nsasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b\n")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1)

        listener = threading.Thread(target=hang_up)
        listener.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert run(["topics", "list", "--bootstrap", address, "--command-config", str(config)]) == 1
        listener.join()
    said = capsys.readouterr().err
    assert f"at the first request: does its listener want {wanted}?" in said
    assert "--command-config FILE says how to connect" in said
    assert "ottla start" not in said


@pytest.mark.parametrize("words", [["sql"], ["sql", "shell"]])
def test_a_tools_usual_command_needs_no_name(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with unheard() as address:
        server = ["--server", f"http://{address}"]
        assert run([*words, *server, "-e", "SHOW STREAMS"]) == 1
        assert f"http://{address} does not answer" in capsys.readouterr().err
        monkeypatch.setattr("sys.stdin", StringIO("server\n"))
        assert run([*words, *server]) == 0
        assert capsys.readouterr().out == f"http://{address}\n"
    monkeypatch.setattr("sys.stdin", StringIO("server\n"))
    assert run(words) == 0
    assert capsys.readouterr().out == "http://127.0.0.1:8088\n"


def test_a_word_that_is_no_command_is_none_of_the_usual_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", "tets"]) == 2
    assert "; did you mean test?" in capsys.readouterr().err


def test_bootstrap_is_taken_from_the_environment_and_may_stand_in_front(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with unheard() as address, unheard() as other:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", address)
        assert run(["topics", "list"]) == 1
        assert address in capsys.readouterr().err
        assert run(["--bootstrap-server", other, "topics", "--list"]) == 1
        assert other in capsys.readouterr().err


def test_closed_streams_are_no_reason_to_fail() -> None:
    shown = subprocess.run(f"{sys.executable} -m ottla --version >&- 2>&-", shell=True, check=False)
    assert shown.returncode == 0


def test_a_plain_command_stays_light() -> None:
    """Measured by what is imported, since a clock is noise: these are what made a list of topics slow."""
    heavy = ["asyncio", "argparse", "ssl", "json", "dataclasses", "inspect", "importlib.metadata", "crc32c", "logging"]
    heavy += ["ottla.protocol.apis", "ottla.model.permissions"]  # what a server makes of the APIs
    code = (
        "import sys; from ottla.cli.app import run; run(['topics', 'list', '-b', '127.0.0.1:1']);"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_a_name_that_is_not_utf_8_is_told_as_such() -> None:
    topic = messages.MetadataRequest.MetadataRequestTopic(name=b"\xff".decode(errors="surrogateescape"))
    with pytest.raises(EncodeError) as caught:
        messages.MetadataRequest(topics=[topic]).encode(12)
    assert explain(caught.value) == r"'\xff' is not UTF-8, as all names in Kafka are"


def test_what_the_broker_refuses_comes_with_a_way_out() -> None:
    assert explain(NoSuchPartition("copy", 1, 1)) == (
        "topic copy has no partition 1: it has one only, partition 0 (UNKNOWN_TOPIC_OR_PARTITION)\n"
        '  `ottla topics add-partitions copy --total 2` adds what is missing; without --partition (or "partition" in a '
        "JSON line) any will do"
    )
    keyless = KafkaError(Errors.INVALID_RECORD, "users-0", "a record without a key on a compacted topic")
    assert "-k KEY" in explain(keyless)
    assert "1 to 249 ASCII letters" in explain(KafkaError(Errors.INVALID_TOPIC_EXCEPTION, "'a b'"))
    large = explain(RequestTooLarge("orders-0", 300_000_000, 16_777_216))
    assert "socket.request.max.bytes is 16777216" in large
    assert "max.message.bytes" not in large  # the topic's limit is not the one that matters


def test_a_connection_that_a_broker_cuts_may_have_carried_too_much() -> None:
    told = explain(KafkaError(Errors.NETWORK_EXCEPTION, "orders-0", "the connection was lost"))
    assert "socket.request.max.bytes" in told


@pytest.mark.parametrize("words", [["mirror", "no.properties"], ["connect", "etc/no.properties"]])
def test_a_file_that_is_not_there_is_missed_and_not_taken_for_a_command(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words) == 1
    assert capsys.readouterr().err.lower() == f"ottla: {words[1]}: no such file or directory\n"


@pytest.mark.parametrize("command", ["run", "describe"])
def test_a_file_of_statements_that_cannot_be_read_is_named_once(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "odd.sql").write_bytes(b"\xff")
    for name, said in (("none.sql", "No such file or directory"), ("odd.sql", "no text in UTF-8 (byte 0)")):
        path = str(tmp_path / name)
        assert run(["sql", command, path]) == 1
        assert capsys.readouterr().err == f"ottla: {path}: it cannot be read: {said}\n"
