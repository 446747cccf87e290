"""Two workers as processes, and the one that works killed again and again: what is left is what nobody disturbed would
leave.

What dies is the worker, by kill -9; its Spark host notices, and ends behind it, while the other worker goes on already.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.blocking.producer import Producer
from tests.platform.connect.cdc import Database
from tests.platform.systems.postgresql import postgresql
from tests.spark.applications import World
from tests.spark.connect.connectors import JSON, TEXTS
from tests.spark.connect.targets import Systems, TablesSearchAndMirror
from tests.support.committed import committed
from tests.support.connect_workers import ask, until
from tests.support.nodes import Ottla, free_ports
from tests.support.patience import eventually
from tests.support.programs import Program

pytestmark = pytest.mark.matrix

TIMES = 10
LINES = 50
"""More of them in each life."""
PROPERTIES = """\
bootstrap.servers={bootstrap}
group.id=pair
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
listeners=http://127.0.0.1:{port}
connect.spark.master=local[2]
"""


class Worker:
    """One of the two: killed, and started again at the same address."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        directory.mkdir()
        (port,) = free_ports(1)
        self.id = f"127.0.0.1:{port}"
        self.url = f"http://{self.id}"
        self._directory = directory
        self._file = directory / "worker.properties"
        self._file.write_text(PROPERTIES.format(bootstrap=bootstrap, port=port))
        self._lives = 0

    def start(self) -> None:
        self._lives += 1
        command = [sys.executable, "-m", "ottla", "connect", str(self._file)]
        self.program = Program(f"worker-{self._lives}", command, self._directory)
        self.program.until("a worker", lambda: "a Connect worker is ready" in self.program.printed())
        until(self.url, "/health", lambda answer: answer.status == 200)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Ottla]:
    with Ottla(tmp_path / "broker") as node:
        yield node


@pytest.fixture
def workers(broker: Ottla, tmp_path: Path) -> Iterator[dict[str, Worker]]:
    """By their ids."""
    with ExitStack() as opened:
        both = [Worker(broker.bootstrap, tmp_path / name) for name in ("one", "two")]
        for worker in both:
            opened.callback(lambda each: each.program.__exit__(None, None, None), worker)
            worker.start()
        yield {worker.id: worker for worker in both}


def where(worker: Worker, connector: str) -> tuple[str, str]:
    status: Any = ask(worker.url, "GET", f"/connectors/{connector}/status").body
    told = status.get("connector") or {}
    return told.get("state", ""), told.get("worker_id", "")


def works(worker: Worker, connector: str = "source") -> str:
    """Who has it, once it runs."""
    eventually(lambda: where(worker, connector)[0] == "RUNNING", "a connector that runs")
    return where(worker, connector)[1]


def taken_over(worker: Worker, what: str, connector: str = "source") -> None:
    eventually(lambda: where(worker, connector) == ("RUNNING", worker.id), what)


def test_the_one_that_works_is_killed_ten_times_and_every_line_is_there_once_and_in_order(
    broker: Ottla, workers: dict[str, Worker], tmp_path: Path
) -> None:
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source = {**TEXTS, "connector.class": "FileStreamSource", "file": str(given), "topic": "lines"}
    sink = {**TEXTS, "connector.class": "FileStreamSink", "file": str(out), "topics": "lines"}
    lines: list[str] = []

    def give() -> None:
        more = [f"line {number}" for number in range(len(lines), len(lines) + LINES)]
        lines.extend(more)
        with given.open("a") as file:
            file.writelines(f"{line}\n" for line in more)

    def all_written() -> bool:
        return out.exists() and out.read_text().splitlines() == lines

    give()
    first = next(iter(workers.values()))
    for name, config in (("source", source), ("sink", sink)):
        assert ask(first.url, "PUT", f"/connectors/{name}/config", config).status == 201
    eventually(all_written, "the first lines")
    for life in range(1, TIMES + 1):
        working = works(first)
        killed, other = (workers[working], *(worker for id, worker in workers.items() if id != working))
        killed.program.kill()
        give()
        taken_over(other, f"a take-over after death {life}")
        eventually(all_written, f"the lines after death {life}")
        killed.start()
        first = killed
    give()
    eventually(all_written, "the last lines")
    assert [record.value for record in committed(broker.bootstrap, "lines")] == lines


def family(pid: int) -> list[int]:
    """A process and all that it has started: its Spark host, and what runs in that."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            number, _, rest = stat.read_text().partition(" ")
            children.setdefault(int(rest.rpartition(")")[2].split()[1]), []).append(int(number))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


@contextmanager
def standing_still(worker: Worker) -> Iterator[None]:
    processes = family(worker.program.pid)
    try:
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in reversed(processes):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_one_that_stands_still_and_comes_back_undoes_nothing_of_what_the_other_wrote(
    broker: Ottla, workers: dict[str, Worker], tmp_path: Path
) -> None:
    config = {**TEXTS, "connector.class": "files-sink", "directory": str(tmp_path / "out"), "topics": "lines"}
    given = 0

    def give(client: Client) -> None:
        nonlocal given
        producer = Producer(client)
        for _ in range(LINES):
            producer.send("lines", b"%d" % given)
            given += 1
        producer.flush()

    def written() -> list[int]:
        files = [path.read_text() for path in (tmp_path / "out").rglob("lines+*.json")]
        return sorted(int(json.loads(line)) for text in files for line in text.splitlines())

    with Client(parse_bootstrap(broker.bootstrap)) as client:
        give(client)
        first, second = workers.values()
        assert ask(first.url, "PUT", "/connectors/sink/config", {**config, "flush.size": "7"}).status == 201
        eventually(lambda: written() == list(range(given)), "the first records")
        asked = first
        for time_ in range(1, 4):
            still = workers[works(asked, "sink")]
            other = second if still is first else first
            give(client)
            if time_ % 2:  # else before it has read them
                eventually(lambda: len(written()) > given - LINES, "the first file of a batch")
            with standing_still(still):
                give(client)
                taken_over(other, f"a take-over, time {time_}", "sink")
                eventually(lambda: written() == list(range(given)), "what the other writes meanwhile")
            give(client)
            eventually(lambda: written() == list(range(given)), f"the records after it came back, time {time_}")
            until(still.url, "/health", lambda answer: answer.status == 200)
            asked = other
        give(client)
        eventually(lambda: written() == list(range(given)), "the last records")


class Shop:
    """A table, its changes in a topic, and these as rows of another table and of Delta's."""

    def __init__(self, database: Database, bootstrap: str, folder: Path) -> None:
        self._database = database
        self._bootstrap = bootstrap
        self._folder = folder
        self._rows = 0
        database.run("CREATE TABLE rows (id int PRIMARY KEY)")

    def configs(self) -> dict[str, dict[str, str]]:
        changes = self._database.config("shop", {"table.include.list": "public.rows", "poll.interval.ms": "100"})
        url = f"jdbc:postgresql://127.0.0.1:{self._database.port}/postgres?user=postgres"
        row = {"transforms": "row", "transforms.row.type": "org.apache.kafka.connect.transforms.ExtractField$Value"}
        sink = {**JSON, **row, "transforms.row.field": "after", "topics": "p.public.rows"}
        copies = {"table.name.format": "copies", "auto.create": "true", "insert.mode": "insert", "pk.mode": "none"}
        return {
            "source": {**JSON, "connector.class": "postgres-cdc", **changes},
            "table": {**sink, "connector.class": "jdbc-sink", "connection.url": url, **copies},
            "delta": {**sink, "connector.class": "delta-sink", "table.uri": str(self._folder)},
        }

    def give(self) -> None:
        self._database.run(f"INSERT INTO rows SELECT generate_series({self._rows}, {self._rows + LINES - 1})")
        self._rows += LINES

    def is_written(self) -> bool:
        return self._copies() == self._delta() == list(range(self._rows))

    def changes(self) -> list[int]:
        return [json.loads(record.value or "")["after"]["id"] for record in committed(self._bootstrap, "p.public.rows")]

    def _copies(self) -> list[int]:
        [(there,)] = self._database.ask("SELECT to_regclass('copies')")
        return [] if there is None else [id for (id,) in self._database.ask("SELECT id FROM copies ORDER BY id")]

    def _delta(self) -> list[int]:
        from deltalake import DeltaTable  # noqa: PLC0415  a native library

        place = self._folder / "p.public.rows"
        if not (place / "_delta_log").exists():
            return []
        return sorted(DeltaTable(place).to_pyarrow_table().column("id").to_pylist())


@pytest.fixture
def shop(broker: Ottla, tmp_path: Path) -> Iterator[Shop]:
    with postgresql("wal_level=logical") as url:
        database = Database(url)
        yield Shop(database, broker.bootstrap, tmp_path / "delta")
        database.connection.close()


def test_changes_and_tables_go_on_elsewhere_and_have_each_row_once(shop: Shop, workers: dict[str, Worker]) -> None:
    """Whoever has the source dies, then who has the sink into the database, then who has Delta's."""
    shop.give()
    first = next(iter(workers.values()))
    for name, config in shop.configs().items():
        assert ask(first.url, "PUT", f"/connectors/{name}/config", config).status == 201
    eventually(shop.is_written, "the first rows")
    for name in shop.configs():
        working = works(first, name)
        killed, other = (workers[working], *(worker for id, worker in workers.items() if id != working))
        killed.program.kill()
        shop.give()
        taken_over(other, f"a take-over of {name}", name)
        eventually(shop.is_written, f"the rows after the death of who had {name}")
        killed.start()
        first = killed
    assert sorted(shop.changes()) == list(range(4 * LINES))


@pytest.fixture
def world(broker: Ottla, tmp_path: Path) -> Iterator[World]:
    with Client(parse_bootstrap(broker.bootstrap)) as client:
        yield World(client, broker.bootstrap, "two", tmp_path)


@pytest.mark.jvm
def test_all_other_kinds_go_on_elsewhere_and_have_each_number_once(
    world: World, there: World, systems: Systems, workers: dict[str, Worker], tmp_path: Path
) -> None:
    """Whoever has the table dies, then who has the index, and so on: the other one then has all of them."""
    folder = tmp_path / "targets"
    folder.mkdir()
    targets = TablesSearchAndMirror(world, there, systems, world.topic("in"), folder)
    given = 0

    def give() -> None:
        nonlocal given
        targets.bring(range(given, given + LINES))
        given += LINES

    def all_written() -> bool:
        try:
            return all(found == list(range(given)) for found in targets.found().values())
        except Exception:  # noqa: BLE001  a table, an index or a topic that is not made yet, each says so in its own way
            return False

    give()
    first = next(iter(workers.values()))
    for name, config in targets.configs().items():
        assert ask(first.url, "PUT", f"/connectors/{name}/config", config).status == 201
    eventually(all_written, "the first numbers")
    for name in targets.configs():
        working = works(first, name)
        killed, other = (workers[working], *(worker for id, worker in workers.items() if id != working))
        killed.program.kill()
        give()
        taken_over(other, f"a take-over of {name}", name)
        eventually(all_written, f"the numbers after the death of who had {name}")
        killed.start()
        first = killed
    assert targets.found() == {name: list(range(given)) for name in targets.configs()}
