"""Secrets stay in files that their owner alone reads; what is handed on between processes names the file."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.client.producing import CODECS
from ottla.client.reach import Reach, kept, secured
from ottla.client.security import PLAINTEXT, SecurityRefused
from ottla.connect.jobs.source_query import codec_of
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import ConfigRefused
from ottla.streams.run.config import CLIENTS, Config, ConfigError

PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "wonder=land\\ ",
}


def login(reach: Reach) -> tuple[str | None, str | None]:
    credentials = reach.security().credentials
    return (None, None) if credentials is None else (credentials.name, credentials.password)


def test_a_reach_gives_back_what_it_was_made_of_and_shows_nothing_of_it() -> None:
    reach = Reach.of("a:1", {**PLAIN, "group.id": "not a matter of doors"})
    assert login(reach) == ("alice", "wonder=land\\ ")
    assert b"wonder" not in pickle.dumps(reach)
    assert "wonder" not in repr(reach)
    path = Path(reach.settings_file)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_plain_text_needs_no_file() -> None:
    assert Reach.of("a:1", {}) == Reach.of("a:1", {"security.protocol": "plaintext"}) == Reach("a:1")
    assert Reach("a:1").security() == PLAINTEXT


def test_equal_settings_are_one_file_so_that_connections_are_shared() -> None:
    assert kept({"a": "1", "b": "2"}) == kept({"b": "2", "a": "1"}) != kept({"a": "1"})


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SecurityRefused, match=r"/nowhere/client.properties: No such file"):
        Reach("a:1", "/nowhere/client.properties").cluster()


def test_files_go_with_their_process_and_those_of_killed_ones_with_the_next() -> None:
    script = "import os, sys; from ottla.client.reach import kept; print(kept(dict(a='1')), flush=True); {}"

    def made(end: str) -> Path:
        done = subprocess.run([sys.executable, "-c", script.format(end)], capture_output=True, text=True, check=False)
        return Path(done.stdout.strip())

    assert not made("pass").exists()
    left = made("os.kill(os.getpid(), 9)")
    assert left.exists()
    made("pass")
    assert not left.parent.exists()


@pytest.mark.parametrize(
    ("role", "who"), [("producer", "worker"), ("consumer", "consumers"), ("admin", "connector's admin")]
)
def test_the_nearest_setting_of_a_connectors_client_wins(role: str, who: str) -> None:
    spec = JobSpec(
        "c",
        {"admin.override.sasl.username": "connector's admin", "consumer.override.group.id": "g"},
        "a:1",
        "workers",
        "offsets",
        "/tmp/nothing",
        defaults={"consumer.sasl.username": "consumers", "admin.sasl.username": "admins"},
        client={**PLAIN, "sasl.username": "worker"},
    )
    assert login(spec.reach(role)) == (who, PLAIN["sasl.password"])  # type: ignore[arg-type]  # of a table
    assert "wonder" not in repr(spec)


def test_a_connectors_records_are_packed_as_it_says_or_its_worker() -> None:
    def codec(given: dict[str, str | None], defaults: dict[str, str]) -> int:
        return codec_of(JobSpec("c", given, "a:1", "workers", "offsets", "/tmp/nothing", defaults=defaults))

    worker = {"producer.compression.type": "lz4"}
    assert codec({}, {}) == CODECS["none"]
    assert codec({}, worker) == CODECS["lz4"]
    assert codec({"producer.override.compression.type": "zstd"}, worker) == CODECS["zstd"]
    with pytest.raises(ConfigRefused, match="brotli is none of none, gzip"):
        codec({"producer.override.compression.type": "brotli"}, worker)


def test_a_connector_may_reach_another_cluster() -> None:
    given = {"producer.override.bootstrap.servers": "b:2", "producer.override.security.protocol": "PLAINTEXT"}
    spec = JobSpec("c", given, "a:1", "workers", "offsets", "/tmp/nothing", client=PLAIN)
    assert spec.reach("producer") == Reach("b:2")


def test_a_connector_whose_clients_cannot_be_made_is_refused_by_name() -> None:
    given = {"consumer.override.security.protocol": "SASL_TLS"}
    spec = JobSpec("c", given, "a:1", "workers", "offsets", "/tmp/nothing")
    with pytest.raises(ConfigRefused, match=r"its consumer cannot be made: security.protocol: 'SASL_TLS' is none of"):
        spec.reach("consumer")


def test_clients_of_an_application_have_their_own_settings_before_the_shared_ones() -> None:
    config = Config(
        {
            **PLAIN,
            "bootstrap.servers": "a:1",
            "consumer.sasl.username": "reader",
            "restore.consumer.sasl.username": "restorer",
            "producer_sasl_username": "writer",
        }
    )
    assert {client: login(config.reach(client))[0] for client in CLIENTS} == {
        "main.consumer": "reader",
        "restore.consumer": "restorer",
        "global.consumer": "reader",
        "producer": "writer",
        "admin": "alice",
    }
    assert "wonder" not in repr(config)
    assert b"wonder" not in pickle.dumps(dict(config))
    again = config.with_changes({"main.consumer.sasl.username": "other", "commit.interval.ms": 5})
    assert [login(again.reach(client))[0] for client in ("main.consumer", "producer")] == ["other", "writer"]


def test_an_application_may_name_a_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=bob\nsasl.password=x\n")
    assert login(Config({"client.settings.file": str(path)}).reach("producer")) == ("bob", "x")


def test_an_application_with_settings_that_cannot_be_used_does_not_begin() -> None:
    with pytest.raises(ConfigError, match=r"ssl.truststore.lokation: not a setting of clients; did you mean"):
        Config({"security.protocol": "SSL", "ssl.truststore.lokation": "x"})


def test_only_what_opens_doors_is_kept() -> None:
    given = {"ssl.protocol": "TLS", "sasl.mechanism": "PLAIN", "security.protocol": "SSL", "linger.ms": "5"}
    assert set(secured(given)) == {"ssl.protocol", "sasl.mechanism", "security.protocol"}
    assert os.path.isabs(kept(secured(given)))
