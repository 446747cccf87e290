"""The book of quotas beside Kafka's own classes: which level applies, who shares a bucket, how long one is held."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ottla.broker.quotas.clients import ClientQuotas, Windows
from ottla.broker.quotas.mutations import Mutations
from ottla.metadata.image import QuotaEntity
from ottla.model.ids import Millis
from ottla.model.quotas import CLIENT_ID, USER
from tests.support.jvm import compiled, java, kafka_jars

pytestmark = pytest.mark.jvm

PROGRAM = Path(__file__).parent / "java" / "QuotaBook.java"
USERS = ("alice", "bob", "carol")
CLIENTS = ("one", "two", "three")
WINDOWS = Windows(11, 1000)


class Book:
    """Ours, spoken to in the same words as theirs."""

    def __init__(self) -> None:
        self._book = ClientQuotas(WINDOWS, WINDOWS, limit=1000)
        self._quotas: dict[QuotaEntity, dict[str, float]] = {}

    def hear(self, line: str) -> str:
        word, *rest = line.split()
        return str(getattr(self, f"_{word}")(*rest))

    def _set(self, user: str, client: str, bound: str) -> str:
        named = [(kind, name) for kind, name in ((CLIENT_ID, client), (USER, user)) if name != "-"]
        parts = tuple((kind, None if name == "*" else name) for kind, name in named)
        self._quotas.pop(parts, None)
        if bound != "-":
            keys = ("producer_byte_rate", "controller_mutation_rate")
            self._quotas[parts] = dict.fromkeys(keys, float(bound))
        self._book.set(self._quotas)
        return "set"

    def _use(self, now: str, user: str, client: str, amount: str) -> int:
        meter = self._book.meters(user, client, Millis(int(now))).produce
        return 0 if meter is None else meter.charge(float(amount), Millis(int(now)))

    def _back(self, now: str, user: str, client: str, amount: str) -> str:
        meter = self._book.meters(user, client, Millis(int(now))).produce
        if meter is not None:
            meter.give_back(float(amount), Millis(int(now)))
        return "back"

    def _most(self, user: str, client: str) -> float:
        meter = self._book.meters(user, client, Millis(0)).produce
        assert meter is not None
        return meter.burst

    def _change(self, now: str, user: str, client: str, partitions: str, how: str) -> str:
        meter = self._book.meters(user, client, Millis(int(now))).mutations
        if meter is None:
            return "done 0"
        asked = Mutations(meter, strict=how == "strict")
        done = asked.take(int(partitions), Millis(int(now)))
        return f"{'done' if done else 'refused'} {asked.throttle_ms}"


def script(dice: Random, steps: int) -> Iterator[str]:
    yield "set * * 100000"
    yield "set - * 100000"
    now = 1_700_000_000_000
    for _ in range(steps):
        now += dice.choice((0, 1, 7, 40, 250, 999, 1000, 1001, 4000, 12_000))
        who = f"{dice.choice(USERS)} {dice.choice(CLIENTS)}"
        kind = dice.random()
        if kind < 0.08:
            user, client = dice.choice((*USERS, "*", "-")), dice.choice((*CLIENTS, "*", "-"))
            if (user, client) not in (("-", "-"), ("*", "*"), ("-", "*")):
                yield f"set {user} {client} {dice.choice(('-', '60', '5000', '12345.5', '100000', '800000'))}"
        elif kind < 0.13:
            yield f"most {who}"
        elif kind < 0.3:
            yield f"change {now} {who} {dice.choice((1, 10, 500, 30_000))} {dice.choice(('strict', 'permissive'))}"
        else:
            amount = dice.choice((0, 60, 999, 40_000, 700_001, 3_000_000))
            yield f"use {now} {who} {amount}"
            if dice.random() < 0.2:
                yield f"back {now} {who} {amount}"


def test_kafkas_classes_say_the_same_of_four_thousand_steps() -> None:
    lines = list(script(Random(20), 4_000))
    jars = kafka_jars()
    done = subprocess.run(
        java(jars, "QuotaBook", classes=compiled(jars, PROGRAM)),
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    theirs = done.stdout.splitlines()
    book = Book()
    ours = [book.hear(line) for line in lines]
    assert [found for found in zip(lines, theirs, ours, strict=True) if found[1] != found[2]] == []
    held = [int(answer) for line, answer in zip(lines, ours, strict=True) if line.startswith("use")]
    assert sum(ms > 0 for ms in held) > 200
    assert sum(answer.startswith("refused") for answer in ours) > 20
