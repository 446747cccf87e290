"""An application that dies at any step of a batch writes, in the end, what one writes that lives.

What readers of committed records find is compared with a run of the same topology over the same input and the same
batches that nothing happened to.
"""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.applications import World, lines_of
from tests.spark.mortal_app import MORTAL, RECORDS_IN_BATCH, app_of, mortal
from tests.spark.sink_app import POINTS, die

pytestmark = pytest.mark.usefixtures("spark")

ROOT = Path(__file__).parent.parent.parent
BATCHES = len(POINTS) + 2
ALL_KILLS = "OTTLA_ALL_KILLS"
"""Set: every topology is killed at every step, which takes some minutes. Else each at one."""

Told = dict[bytes | None, list[tuple[bytes | None, int]]]
"""By key, in order. Rows of one batch with the same time have no order among keys."""


def fill(world: World) -> None:
    lines, others = world.topic("lines"), world.topic("others")
    world.topic("out")
    world.send(lines_of(17, [lines], BATCHES * RECORDS_IN_BATCH))
    # Over the same time: records of a join that are far apart would find no partners.
    world.send(lines_of(18, [others], BATCHES * RECORDS_IN_BATCH)[::BATCHES])


def written(world: World) -> Told:
    """And nothing is left to do."""
    world.has_read(f"{world.name}.lines", BATCHES * RECORDS_IN_BATCH)
    found: Told = {}
    for record in world.read(f"{world.name}.out"):
        found.setdefault(record.key, []).append((record.value, record.timestamp))
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[World, str], Told]:
    """What a topology writes when it lives: found out once."""
    known: dict[str, Told] = {}

    def told(like: World, topology: str) -> Told:
        if topology not in known:
            directory = tmp_path_factory.mktemp(topology)
            world = World(like.client, like.bootstrap, f"undisturbed-{topology}", directory)
            fill(world)
            app_of(world, topology).run(once=True)
            known[topology] = written(world)
        return known[topology]

    return told


def checkpoint(world: World) -> Path:
    (commits,) = world.directory.glob(f"{world.name}/checkpoints/*/commits")
    return commits.parent


def forget_last_commit(world: World) -> None:
    """As if the machine had lost the last file that Spark wrote."""
    commits = checkpoint(world) / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink()


@pytest.mark.parametrize("topology", MORTAL)
def test_deaths_at_every_step_and_a_lost_commit_file_change_nothing(
    world: World, topology: str, undisturbed: Callable[[World, str], Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.streams.run import application  # noqa: PLC0415  imports pyspark

    fill(world)
    for batch, point in enumerate(POINTS, 1):
        with monkeypatch.context() as patched:
            patched.setattr(application, "TransactionalSink", mortal(point, batch, die))
            with pytest.raises(application.StreamsFailed):
                app_of(world, topology).run(once=True)
        files = [(checkpoint(world) / folder / str(batch)).exists() for folder in ("offsets", "commits")]
        assert files == [True, False]
    app_of(world, topology).run(once=True)
    assert written(world) == undisturbed(world, topology)
    forget_last_commit(world)
    app_of(world, topology).run(once=True)
    assert written(world) == undisturbed(world, topology)


KILLS = (
    list(itertools.product(MORTAL, POINTS))
    if os.environ.get(ALL_KILLS)
    else list(zip(MORTAL, itertools.cycle(POINTS), strict=False))
)


@pytest.mark.parametrize(("topology", "point"), KILLS)
def test_an_application_that_is_killed_goes_on_where_it_was(
    world: World, topology: str, point: str, undisturbed: Callable[[World, str], Told]
) -> None:
    fill(world)
    words = [world.bootstrap, str(world.directory), world.name, topology, point, "1"]
    # Into a file: a pipe would stay open for as long as the orphaned JVM takes to notice.
    output = world.directory / "output"
    with output.open("w") as out:
        command = [sys.executable, "-m", "tests.spark.mortal_app", *words]
        killed = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=False)
    assert killed.returncode == -signal.SIGKILL, output.read_text()
    app_of(world, topology).run(once=True)
    assert written(world) == undisturbed(world, topology)
