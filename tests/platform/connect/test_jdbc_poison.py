"""What is in the table is what was in the topic, but for the poison, all of which is in the letters."""

import json

import numpy as np
import pyarrow as pa

from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import Columns, Span
from tests.platform.connect.databases import ask

COUNT, STEP = 100_000, 10_000
POISON = (b"{", b"[1]", b'{"name":"no id"}', b'{"id":"text","name":"x"}', b"null", b'{"id":1.5e300,"name":"x"}')


def value(offset: int) -> bytes:
    if offset % 997 == 5:
        return POISON[offset // 997 % len(POISON)]
    return json.dumps({"id": offset, "name": f'n"{offset}\n', "part": offset % 7}).encode()


def test_the_table_has_all_that_is_good_and_the_letters_all_that_is_not(url: str) -> None:
    config = {
        "connector.class": "jdbc-sink",
        "connection.url": url,
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "auto.create": "true",
        "errors.tolerance": "all",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    task = SinkTask(JobSpec("c", config, "", "g", "o", ""))
    values = [value(offset) for offset in range(COUNT)]
    columns = [
        Columns(
            "t",
            0,
            pa.nulls(STEP, pa.binary()),
            pa.array(values[start : start + STEP], pa.binary()),
            np.arange(start, start + STEP),
            np.zeros(STEP, np.int64),
        )
        for start in range(0, COUNT, STEP)
    ]
    report = task.run(0, [Span("t", 0, 0, COUNT)], iter(columns))
    task.close()
    bad = {offset for offset in range(COUNT) if offset % 997 == 5}
    assert (report.failed, {letter.offset for letter in report.letters}) == (None, bad)
    assert {letter.value for letter in report.letters} == set(POISON)
    good = [(n, f'n"{n}\n', n % 7) for n in range(COUNT) if n not in bad]
    assert ask(url, "SELECT id, name, part FROM t ORDER BY id") == good
