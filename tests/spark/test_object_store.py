"""State and checkpoints in a store that speaks S3: an application has nothing on the disk of its machine."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.platform.systems.object_store import object_store
from tests.spark.applications import START, Input, World, driven, lasts, lines_of
from tests.spark.test_cluster import APP, BESIDE
from tests.support.jvm import jars_of
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.jvm, pytest.mark.matrix]

ROOT = Path(__file__).parents[2]
POM = Path(__file__).parent / "java" / "pom.xml"
LOGIN = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}


@pytest.fixture
def lake() -> Iterator[Any]:
    """A client of the store, which has one bucket."""
    boto3 = pytest.importorskip("boto3")
    with object_store() as url:
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **LOGIN)
        client.create_bucket(Bucket="lake")
        yield client


def keys_in(lake: Any) -> set[str]:
    pages = lake.get_paginator("list_objects_v2").paginate(Bucket="lake")
    return {each["Key"] for page in pages for each in page.get("Contents", ())}


def spark_settings(lake: Any) -> list[str]:
    given = {
        "jars": ",".join(str(each) for each in sorted(jars_of("s3a", POM).glob("*.jar"))),
        "hadoop.fs.s3a.endpoint": lake.meta.endpoint_url,
        "hadoop.fs.s3a.endpoint.region": "us-east-1",
        "hadoop.fs.s3a.path.style.access": "true",
        # Another client of AWS's does that one, and takes the "100 Continue" of moto's server for the answer.
        "hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
    }
    return [word for name, text in given.items() for word in ("-X", f"spark.{name}={text}")]


def run_in(folder: Path, world: World, lake: Any) -> None:
    """Once, in a folder that is gone afterwards."""
    folder.mkdir()
    (folder / "app.py").write_text(APP.format(name=world.name))
    (folder / "beside.py").write_text(BESIDE)
    command = [sys.executable, "-m", "ottla", "streams", "run", "app.py", "--once", "--bootstrap", world.bootstrap,
               "--state-dir", "s3a://lake/streams", *spark_settings(lake)]  # fmt: skip
    login = {name.upper(): text for name, text in LOGIN.items()}
    environment = {**os.environ, **login, "PYTHONPATH": str(ROOT / "src"), "OTTLA_PREPARE": "never"}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=10 * PATIENCE_SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert sorted(each.name for each in folder.iterdir() if each.name != "__pycache__") == ["app.py", "beside.py"]
    shutil.rmtree(folder)


def test_the_jars_are_those_of_sparks_hadoop() -> None:
    spark = find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    (client,) = Path(spark.origin).parent.glob("jars/hadoop-client-api-*.jar")
    version = client.stem.rpartition("-")[2]
    assert f"<artifactId>hadoop-aws</artifactId><version>{version}</version>" in POM.read_text()


def test_an_application_goes_on_elsewhere_from_what_it_left_in_the_store(
    world: World, lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, others = world.topic("lines"), world.topic("others")
    outs = [world.topic(short) for short in ("words", "windows", "seen")]
    records = lines_of(31, [lines, others], 160)
    records.append(Input(lines, b"z", b"last words", START + 60_000))
    world.send(records[:90])
    run_in(world.directory / "first", world, lake)
    left = keys_in(lake)
    assert all(each.startswith(f"streams/{world.name}/") for each in left)
    world.send(records[90:])
    run_in(world.directory / "second", world, lake)
    found = keys_in(lake)
    assert not [each for each in found if each.endswith(".restored")], "by checkpoints, not by changelogs"
    assert {each for each in found - left if "/commits/" in each}
    monkeypatch.syspath_prepend(world.directory / "third")
    (world.directory / "third").mkdir()
    (world.directory / "third" / "beside.py").write_text(BESIDE)
    made: dict[str, Any] = {}
    exec(APP.format(name=world.name), made)
    for out in outs:
        told = {record.key: (record.value, record.timestamp) for record in world.read(out)}
        assert told == lasts(driven(made["builder"], records, out)), out
        assert told
