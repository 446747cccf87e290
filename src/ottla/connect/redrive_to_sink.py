"""Dead letters straight to the sink that refused them, past their topic: what others read there does not come again.

A letter comes to the sink as the record that it was, at the offset that it had, through the connector's converters and
transforms. The sink is opened under a name of these letters: one that keeps offsets with what it writes has long gone
past these under its own name, and would leave them out; under this one it knows them if they come again after a crash
in the midst. Letters that are refused once more stay where they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ottla.client.blocking.cluster import Cluster
from ottla.connect.dead_letters import Letter
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.plugins import PluginType
from ottla.connect.redrive import AT_ONCE, DeadLetter, Letters, RedriveRefused, require_whole
from ottla.connect.spi import ConfigRefused
from ottla.connect.spi.sink import Columns, Span
from ottla.pipelines.sink.transaction import Transaction
from ottla.pipelines.source.columns import HEADERS_TYPE


class Taken(NamedTuple):
    written: int
    refused: Sequence[Letter]
    """Once more."""


class _Origin(NamedTuple):
    topic: str
    partition: int
    offset: int


def to_sink(cluster: Cluster, letters: Letters, found: Sequence[DeadLetter], spec: JobSpec) -> Taken:
    """Raises RedriveRefused: for letters that do not tell where they came from, before any is written, and when the
    sink cannot go on; what was written until then is remembered."""
    require_whole(found)
    origins = {letter: _origin(letter) for letter in found}
    ordered = sorted(found, key=origins.__getitem__)
    # Whoever redrives the same letters elsewhere is put out of action.
    transaction = Transaction(cluster, letters.group, timeout_ms=60_000)
    transaction.initialise()
    written, refused = 0, list[Letter]()
    for start in range(0, len(ordered), AT_ONCE):
        portion = ordered[start : start + AT_ONCE]
        again = _written(spec, portion, [origins[letter] for letter in portion])
        not_taken = {(letter.topic, letter.partition, letter.offset) for letter in again}
        done = [letter for letter in portion if origins[letter] not in not_taken]
        if done:
            _remember(transaction, letters, done)
        written += len(done)
        refused += again
    return Taken(written, refused)


def _remember(transaction: Transaction, letters: Letters, done: Sequence[DeadLetter]) -> None:
    transaction.commit_offsets(letters.group, *letters.sent(done))
    transaction.commit()


def _origin(letter: DeadLetter) -> _Origin:
    said = letter.said
    try:
        return _Origin(said["topic"], int(said["partition"]), int(said["offset"]))
    except (KeyError, ValueError):
        raise RedriveRefused(
            f"letter {letter.place.partition}:{letter.record.offset} does not tell which record of a sink it was: "
            "errors.deadletterqueue.context.headers.enable=true is for those to come; letters of sources go to topics"
        ) from None


def _written(spec: JobSpec, portion: Sequence[DeadLetter], origins: Sequence[_Origin]) -> Sequence[Letter]:
    """Gives those that were refused."""
    named = hashlib.sha256(repr(origins).encode()).hexdigest()[:12]
    # With tolerance, so that one that is still no good does not keep the others.
    tolerant = {**spec.config, "errors.tolerance": "all"}
    try:
        if spec.plugin().PLUGIN_TYPE is not PluginType.SINK:
            raise RedriveRefused(f"{spec.name} is a source: its letters can go to topics only")
        task = SinkTask(replace(spec, name=f"{spec.name}-redrive-{named}", config=tolerant))
    except ConfigRefused as error:
        raise RedriveRefused(f"{spec.name} cannot be opened: {error}") from error
    columns = list(_columns(portion, origins))
    spans = [Span(each.topic, each.partition, int(each.offsets[0]), int(each.offsets[-1]) + 1) for each in columns]
    try:
        report = task.run(0, spans, iter(columns), alone=True)
    finally:
        task.close()
    if report.failed is not None:
        raise RedriveRefused(f"{spec.name} took none of {len(portion)} letters: {report.failed.text}")
    return report.letters


def _columns(portion: Sequence[DeadLetter], origins: Sequence[_Origin]) -> Iterator[Columns]:
    pairs = zip(portion, origins, strict=True)
    for (topic, partition), these in groupby(pairs, key=lambda pair: pair[1][:2]):
        records = [(letter.record, letter.own_headers, origin.offset) for letter, origin in these]
        yield Columns(
            topic,
            partition,
            pa.array([record.key for record, _, _ in records], pa.binary()),
            pa.array([record.value for record, _, _ in records], pa.binary()),
            np.array([offset for _, _, offset in records], np.int64),
            np.array([record.timestamp for record, _, _ in records], np.int64),
            pa.array(
                [[{"key": name, "value": value} for name, value in headers] for _, headers, _ in records], HEADERS_TYPE
            ),
        )
