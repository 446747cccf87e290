"""An application that dies at any step of a batch writes, in the end, what one writes that lives.

What readers of committed records find is compared with a run of the same topology over the same input and the same
batches that nothing happened to.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.applications import Input, World, lines_of
from tests.spark.mortal_app import MORTAL, RECORDS_IN_BATCH, app_of, mortal
from tests.spark.sink_app import POINTS, die

pytestmark = pytest.mark.usefixtures("spark")

ROOT = Path(__file__).parent.parent.parent
BATCHES = len(POINTS) + 2
ALL_KILLS = "OTTLA_ALL_KILLS"
"""Set: every topology is killed at every step, which takes some minutes. Else each at one."""

Told = dict[bytes | None, list[tuple[bytes | None, int]]]
"""By key, in order. Rows of one batch with the same time have no order among keys."""


def _cell(often: str, topology: str, *values: str) -> Any:
    """`make test` has one kind of application die, `make matrix` all."""
    return pytest.param(*values, marks=() if topology == often else pytest.mark.matrix)


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


@pytest.mark.parametrize("topology", [_cell("windows", topology, topology) for topology in MORTAL])
def test_deaths_at_every_step_and_a_lost_commit_file_change_nothing(
    world: World, topology: str, undisturbed: Callable[[World, str], Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.streams.run import running_query  # noqa: PLC0415  imports pyspark
    from ottla.streams.run.failures import StreamsFailed  # noqa: PLC0415

    fill(world)
    for batch, point in enumerate(POINTS, 1):
        with monkeypatch.context() as patched:
            patched.setattr(running_query, "TransactionalSink", mortal(point, batch, die))
            with pytest.raises(StreamsFailed):
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
    else [
        _cell("join", topology, topology, point)
        for topology, point in zip(MORTAL, itertools.cycle(POINTS), strict=False)
    ]
)


def run_and_die(world: World, topology: str, point: str, batch: int) -> None:
    words = [world.bootstrap, str(world.directory), world.name, topology, point, str(batch)]
    # Into a file: a pipe would stay open for as long as the orphaned JVM takes to notice.
    output = world.directory / "output"
    with output.open("w") as out:
        command = [sys.executable, "-m", "tests.spark.mortal_app", *words]
        killed = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=False)
    assert killed.returncode == -signal.SIGKILL, output.read_text()


@pytest.mark.parametrize(("topology", "point"), KILLS)
def test_an_application_that_is_killed_goes_on_where_it_was(
    world: World, topology: str, point: str, undisturbed: Callable[[World, str], Told]
) -> None:
    fill(world)
    run_and_die(world, topology, point, 1)
    app_of(world, topology).run(once=True)
    assert written(world) == undisturbed(world, topology)


TOGETHER = 50 if os.environ.get(ALL_KILLS) else 1
SHARE = 3 * RECORDS_IN_BATCH
"""Of the input, before each life: three batches of the first query, and those that come of them."""


def rows_of(world: World) -> dict[bytes | None, bytes | None]:
    """What the output holds in the end, as a table."""
    found = world.last(f"{world.name}.out")
    return {key: value for key, (value, _) in found.items() if value not in (None, b"0")}


@pytest.mark.matrix
def test_a_join_by_foreign_key_that_is_killed_again_and_again_holds_the_rows_of_one_that_lives(
    world: World, tmp_path: Path
) -> None:
    """Two queries feed each other, and a third counts what comes of it: each dies at any step, in any batch."""
    quiet = World(world.client, world.bootstrap, f"{world.name}-undisturbed", tmp_path / "undisturbed")
    lives = (TOGETHER + 1) * SHARE
    inputs = {each.name: _input(each, lives) for each in (world, quiet)}
    for kill in range(TOGETHER):
        world.send(inputs[world.name][kill * SHARE : (kill + 1) * SHARE])
        run_and_die(world, "foreign-keys", POINTS[kill % len(POINTS)], 1 + kill % 5)
    world.send(inputs[world.name][TOGETHER * SHARE :])
    app_of(world, "foreign-keys").run(once=True)
    quiet.send(inputs[quiet.name])
    app_of(quiet, "foreign-keys").run(once=True)
    assert len(rows_of(quiet)) > 6
    assert rows_of(world) == rows_of(quiet)


def _input(world: World, number: int) -> list[Input]:
    """The same for every world; now and then a row is deleted."""
    topics = [world.topic("lines"), world.topic("others")]
    world.topic("out")
    dice = random.Random(19)
    return [each._replace(value=None) if dice.random() < 0.1 else each for each in lines_of(19, topics, number)]
