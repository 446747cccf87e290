"""An application to be killed: runs one of the topologies here, and dies by SIGKILL at one step of one batch.

python -m tests.spark.mortal_app BOOTSTRAP DIRECTORY NAME TOPOLOGY POINT BATCH
"""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.streams import StreamsApp, StreamsBuilder
from tests.spark.applications import Build, World, counted_by_source, hopping_count, joined, punctual, shouted
from tests.spark.sink_app import Kill, MortalSink

MORTAL: Final[Mapping[str, Build]] = {
    "stateless": shouted,
    "windows": hopping_count,
    "counted-by-source": counted_by_source,
    "join": joined,
    "processor": punctual,
}
RECORDS_IN_BATCH: Final = 25


def app_of(world: World, topology: str) -> StreamsApp:
    builder = StreamsBuilder()
    MORTAL[topology](builder, *(f"{world.name}.{short}" for short in ("lines", "others", "out")))
    return world.app(builder, **{"max.records.per.batch": RECORDS_IN_BATCH})


def mortal(point: str, batch: int, die: Callable[[], None]) -> Callable[..., MortalSink]:
    """Stands in for the sink of an application."""
    return partial(MortalSink, point=point, batch=batch, die=die)


def main(bootstrap: str, directory: str, name: str, topology: str, point: str, batch: str) -> None:
    from ottla.pipelines import session  # noqa: PLC0415  imports pyspark
    from ottla.streams.run import application  # noqa: PLC0415  imports pyspark

    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    session.new_session(name, "local[2]", **{"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": quick})
    setattr(application, "TransactionalSink", mortal(point, int(batch), Kill(os.getpid())))  # noqa: B010  mypy
    with Client(parse_bootstrap(bootstrap)) as client:
        app_of(World(client, bootstrap, name, Path(directory)), topology).run(once=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
