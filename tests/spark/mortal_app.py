"""An application to be killed: runs one of the topologies here, and dies by SIGKILL at one step of one batch.

python -m tests.spark.mortal_app BOOTSTRAP DIRECTORY NAME TOPOLOGY POINT BATCH

One with several queries dies in the batch of that number that any of them writes, and runs until then.
"""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.sink import Unpacked, Written
from ottla.pipelines.source.origins import Origins
from ottla.streams import StreamsApp, StreamsBuilder
from tests.spark.applications import (
    Build,
    World,
    foreign_keys,
    held_cogroup,
    hopping_count,
    joined,
    punctual,
    shouted,
    windows_in_source,
)
from tests.spark.sink_app import Kill, MortalSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MORTAL: Final[Mapping[str, Build]] = {
    "stateless": shouted,
    "windows": hopping_count,
    "windows-in-source": windows_in_source,
    "join": joined,
    "processor": punctual,
    "cogroup": held_cogroup,
}
OF_SEVERAL_QUERIES: Final[Mapping[str, Build]] = {"foreign-keys": foreign_keys}
RECORDS_IN_BATCH: Final = 25


def app_of(world: World, topology: str) -> StreamsApp:
    builder = StreamsBuilder()
    build = {**MORTAL, **OF_SEVERAL_QUERIES}[topology]
    build(builder, *(f"{world.name}.{short}" for short in ("lines", "others", "out")))
    return world.app(builder, **{"max.records.per.batch": RECORDS_IN_BATCH})


class MortalTogether(MortalSink):
    """The sinks of all queries die at the first chance from the nth batch on, whosever it is."""

    left = 0

    def write(
        self,
        batch: "DataFrame | Unpacked",
        batch_id: int,
        offsets: Mapping[TopicPartition, int],
        origins: Origins | None = None,
    ) -> Written:
        MortalTogether.left -= 1
        self._batch = batch_id if MortalTogether.left <= 0 else -1
        return super().write(batch, batch_id, offsets, origins)


def mortal(point: str, batch: int, die: Callable[[], None]) -> Callable[..., MortalSink]:
    """Stands in for the sink of an application."""
    return partial(MortalSink, point=point, batch=batch, die=die)


def main(bootstrap: str, directory: str, name: str, topology: str, point: str, batch: str) -> None:
    from ottla.pipelines import session  # noqa: PLC0415  imports pyspark
    from ottla.streams.run import running_query  # noqa: PLC0415  imports pyspark

    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    session.new_session(name, "local[2]", **{"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": quick})
    several = topology in OF_SEVERAL_QUERIES
    sink: Callable[..., MortalSink] = mortal(point, int(batch), Kill(os.getpid()))
    if several:
        MortalTogether.left = int(batch)
        sink = partial(MortalTogether, point=point, batch=-1, die=Kill(os.getpid()))
    setattr(running_query, "TransactionalSink", sink)  # noqa: B010  mypy
    with Client(parse_bootstrap(bootstrap)) as client:
        app_of(World(client, bootstrap, name, Path(directory)), topology).run(once=not several)


if __name__ == "__main__":
    main(*sys.argv[1:])
