"""Which source reads: ours, or the Kafka connector of Spark's JVM where its jars are on the session.

Both give the same rows. Ours reads about twice as many records per second, whatever they are, but a micro-batch costs
it more to begin with (figures: docs/DECISIONS.md): where batches are kept small the connector is faster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from ottla.client.offsets import READ_COMMITTED
from ottla.client.reach import Reach
from ottla.client.security import settings_of
from ottla.pipelines.source.data_source import FORMAT, OttlaDataSource
from ottla.pipelines.source.offsets import Offsets, to_json
from ottla.pipelines.source.options import CLIENT, NAMES, Position, SourceOptions, is_secured, parse_options
from ottla.pipelines.source.planned import stream_of
from ottla.pipelines.source.positions import Positions, open_cluster

JVM_FORMAT: Final = "kafka"
JVM_CLASS: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
PREFER: Final = "source"
"""Option of `read_stream`: `ottla`, `kafka`, or `auto`, which is the default."""

SETTINGS_FILE: Final = "clientSettingsFile"
FASTER: Final = "it reads about twice as fast as the JVM's connector (docs/DECISIONS.md)"
"""Why ours is taken."""
SMALL_BATCH: Final = 10_000
"""Up to so many records in a micro-batch the connector is done sooner, be they of 100 bytes or of 10 KB."""

_OURS_ALONE: Final = {
    "streamTime": "the connector has no column of stream time",
    "maxBytesPerTrigger": "the connector does not limit batches by bytes",
    "waitMillis": "the connector does not wait for records",
    "clientSettingsFile": "the connector's options, which Spark shows, would have the secrets in them",
    "initialOffsetsFile": None,  # it keeps its first offsets in the checkpoint
}


class Choice(NamedTuple):
    format: str
    reason: str


def read_stream(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """A streaming DataFrame with the columns of Spark's Kafka source. Raises ValueError for options that are wrong."""
    options = without_secrets(options)
    chosen = choose(spark, options)
    given = {name: value for name, value in options.items() if name.lower() != PREFER}
    if chosen.format == FORMAT:
        return stream_of(spark, OttlaDataSource, given)
    return spark.readStream.format(JVM_FORMAT).options(**_for_jvm(given)).load()


def without_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """`kafka.sasl.*` and the like are kept in a file that only its owner reads, and the options name it: Spark shows
    them in its pages. Raises SecurityRefused."""
    secrets = {name.lower().removeprefix(CLIENT): value for name, value in options.items() if is_secured(name)}
    others = {name: value for name, value in options.items() if not is_secured(name)}
    named = next((name for name in others if name.lower() == SETTINGS_FILE.lower()), None)
    if not secrets:
        return others
    if named is not None:
        secrets = {**settings_of(Path(others.pop(named))), **secrets}
    reach = Reach.of("", secrets)
    return {**others, SETTINGS_FILE: reach.settings_file} if reach.settings_file else others


def choose(spark: SparkSession, options: Mapping[str, str]) -> Choice:
    """Raises ValueError for options that are wrong, or cannot be had together."""
    return decide(options, there=has_jvm_connector(spark))


def decide(options: Mapping[str, str], *, there: bool) -> Choice:
    """`there`: whether the connector's jars are."""
    wanted = {name.lower(): value for name, value in options.items()}.get(PREFER, "auto")
    if wanted not in (FORMAT, JVM_FORMAT, "auto"):
        raise ValueError(f"{PREFER}={wanted}: auto, {FORMAT} or {JVM_FORMAT} is expected")
    parsed = parse_options({name: value for name, value in options.items() if name.lower() != PREFER})
    if wanted == FORMAT:
        return Choice(FORMAT, "it was asked for")
    needs_ours = _needs_ours(options)
    if wanted == JVM_FORMAT:
        if needs_ours is not None:
            raise ValueError(f"{PREFER}={JVM_FORMAT} cannot be: {needs_ours}")
        if not there:
            raise ValueError(f"{PREFER}={JVM_FORMAT} cannot be: the connector's jars are not on the Spark session")
        return Choice(JVM_FORMAT, "it was asked for")
    if not there:
        return Choice(FORMAT, "the JVM connector's jars are not on the session")
    if needs_ours is not None:
        return Choice(FORMAT, needs_ours)
    if parsed.max_offsets is not None and parsed.max_offsets <= SMALL_BATCH:
        return Choice(JVM_FORMAT, f"the JVM's connector is done sooner with batches of up to {SMALL_BATCH:,} records")
    return Choice(FORMAT, FASTER)


def _needs_ours(options: Mapping[str, str]) -> str | None:
    given = {name.lower() for name in options}
    return next((reason for name, reason in _OURS_ALONE.items() if reason and name.lower() in given), None)


def has_jvm_connector(spark: SparkSession) -> bool:
    """Whether Spark could load the connector now."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415

    jvm = spark.sparkContext._jvm
    assert jvm is not None, "a session without a JVM of its own (Spark Connect) cannot be asked"
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        jvm.java.lang.Class.forName(JVM_CLASS, False, loader)
    except Py4JJavaError:
        return False
    return True


def _for_jvm(options: Mapping[str, str]) -> dict[str, str]:
    """The same in the connector's words. Starting points that it does not know are looked up now: it writes what it
    begins with into its checkpoint, so a restart does not ask again."""
    parsed = parse_options(options)
    names = {name.lower(): name for name in NAMES}
    out = {names.get(name.lower(), name): value for name, value in options.items()}
    out["kafka.bootstrap.servers"] = parsed.reach.servers
    out["kafka.isolation.level"] = "read_committed" if parsed.isolation == READ_COMMITTED else "read_uncommitted"
    if parsed.starting is not None and out.get("startingOffsets", "").startswith(("group:", "timestamp:")):
        out["startingOffsets"] = json.dumps(to_json(_looked_up(parsed, parsed.starting)))
    for name in ("bootstrap.servers", "isolationLevel", *_OURS_ALONE):
        out.pop(name, None)
    return out


def _looked_up(options: SourceOptions, starting: Position) -> Offsets:
    with open_cluster(options) as cluster:
        return Positions(cluster, options).resolve("startingOffsets", starting)
