"""Files that Spark's JVM writes on this machine: by Hadoop's file system, with modes set by Java, not by `chmod`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Files:
    """The file system that checkpoints go to."""

    def __init__(self, spark: "SparkSession") -> None:
        self._hadoop: Any = spark.sparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
        settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self.system = self._hadoop.FileSystem.getLocal(settings)

    def path(self, path: Path) -> Any:
        return self._hadoop.Path(str(path))

    def set_mode(self, path: Path, mode: int) -> None:
        self.system.setPermission(self.path(path), self._hadoop.permission.FsPermission(f"{mode:o}"))


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o7777 for path in folder.iterdir()}


def test_a_file_has_its_checksums_and_the_mode_that_chmod_would_give_it(spark: "SparkSession", tmp_path: Path) -> None:
    files = Files(spark)
    assert files.system.getClass().getName() == "ottla.LocalFiles"
    stream = files.system.create(files.path(tmp_path / "file"), True)
    stream.write(7)
    stream.close()
    assert modes(tmp_path) == {"file": 0o644, ".file.crc": 0o644}
    (tmp_path / "file").write_bytes(b"8")
    with pytest.raises(Exception, match="Checksum error"):
        files.system.open(files.path(tmp_path / "file")).read()


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o1777], ids=oct)
def test_a_mode_is_set_as_chmod_sets_it(spark: "SparkSession", tmp_path: Path, mode: int) -> None:
    (tmp_path / "folder").mkdir()
    Files(spark).set_mode(tmp_path / "folder", mode)
    assert modes(tmp_path) == {"folder": mode}
