"""The secured day of `test_secured_day` for clients of other languages: Apache's own of Java, and franz-go.

Each role (a writer, transactions, a member of a group) is a process that says what it did and was told."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Cluster
from ottla.testing.security import as_java
from tests.support.clients.foreign import apache_java, franz_go
from tests.support.programs import Dialogue
from tests.wire import test_secured_day as here
from tests.wire.test_secured_day import LEDGER, LOGIN_MS, PLAIN_TOPIC, Day, Settings, Work, a_day, lets_in, restart_each

TOPICS = {"writes": (PLAIN_TOPIC,), "transacts": (LEDGER,), "reads": (PLAIN_TOPIC, LEDGER)}


def java(role: str, settings: Settings, file: Path) -> list[str]:
    file.write_text("".join(f"{name}={text}\n" for name, text in as_java(settings).items()))
    return [*apache_java("Day"), str(file), role]


def go(role: str, settings: Settings, file: Path) -> list[str]:
    given: dict[str, Any] = {**settings, "ssl.truststore.location": settings["ssl.ca.location"]}
    file.write_text("".join(f"{name}={text}\n" for name, text in given.items()))
    return ["env", f"OTTLA_CLIENT_CONFIG={file}", str(franz_go()), role]


Command = Callable[[str, Settings, Path], list[str]]


def hung_up(day: Day, program: Dialogue) -> None:
    day.ending.wait()
    program.hang_up()


def working(command: Command, role: str, folder: Path) -> Work:
    def work(day: Day, name: str, settings: Settings) -> None:
        run = command(role, settings, folder / f"{name}.properties")
        program = Dialogue(name, [*run, settings["bootstrap.servers"], name, *TOPICS[role]], folder / f"{name}.log")
        threading.Thread(target=hung_up, args=(day, program), daemon=True).start()
        for line in program.heard():
            said, _, value = line.rstrip("\n").partition(" ")
            match said:
                case "wrote":
                    day.written[name].append(value)
                case "aborted":
                    day.aborted.append(value)
                case "read":
                    day.read[name][value] = None
                case _:
                    day.troubles.append(f"{name}: {line}")
        if not day.ending.is_set():
            day.troubles.append(f"{name} ended by itself: {(folder / f'{name}.log').read_text()[-2000:]}")
        program.close()

    return work


@pytest.mark.matrix
@pytest.mark.jvm
@pytest.mark.parametrize(
    ("language", "command", "build"),
    [("java", java, lambda: apache_java("Day")), ("franz-go", go, franz_go)],
    ids=["java", "franz-go"],
)
def test_clients_of_other_languages_notice_nothing_either(
    language: str, command: Command, build: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build()
    writers = {name: working(command, role, tmp_path) for name, role in roles(language, "writes", "transacts")}
    readers = {name: working(command, role, tmp_path) for name, role in roles(language, "reads")}
    monkeypatch.setattr(here, "WRITERS", writers)
    monkeypatch.setattr(here, "READERS", readers)

    def during(day: Day) -> None:
        began = time.monotonic()
        kafka.renew_certificate()
        day.goes_on()
        before, after = kafka.user("alice"), kafka.user("alice")
        assert lets_in(after)
        assert not lets_in(before)
        day.goes_on()
        restart_each(kafka)
        day.goes_on()
        assert time.monotonic() - began > LOGIN_MS / 1000, "nobody had to log in again"

    with Cluster(nodes=3, security="SASL_SSL", connections_max_reauth_ms=LOGIN_MS) as kafka:
        day = a_day(kafka, (language,), during)
    assert day.aborted


def roles(language: str, *wanted: str) -> list[tuple[str, str]]:
    return [(f"{language}-{role}", role) for role in wanted]
