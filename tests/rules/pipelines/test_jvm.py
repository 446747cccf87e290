"""How the JVM of a local session is started."""

from pathlib import Path

import pytest

from ottla.pipelines import own_classes
from ottla.pipelines.jvm import OWN_WAYS, Installation


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    home, java = tmp_path / "spark", tmp_path / "java" / "bin" / "java"
    (home / "jars").mkdir(parents=True)
    java.parent.mkdir(parents=True)
    for file in (home / "jars" / "b.jar", home / "jars" / "a.jar", java):
        file.touch()
    for name in OWN_WAYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Installation.found()
    assert found is not None
    found.folder.mkdir(parents=True)
    (found.folder / "options.json").write_text('["--add-opens=java.base/java.nio=ALL-UNNAMED"]')
    return found


def test_the_class_path_is_in_order_since_an_archive_holds_for_one_order(installed: Installation) -> None:
    jars = installed.home / "jars"
    assert installed.class_path == f"{jars}/a.jar:{jars}/b.jar"


def test_the_command_has_what_sparks_launcher_said_and_the_settings(installed: Installation) -> None:
    words = installed.command({"spark.driver.memory": "2g"}, [])
    assert words[0] == str(installed.java)
    assert "-Xmx2g" in words and "--add-opens=java.base/java.nio=ALL-UNNAMED" in words
    assert words[-4:] == ["org.apache.spark.deploy.SparkSubmit", "--conf", "spark.driver.memory=2g", "pyspark-shell"]


def test_our_classes_stand_behind_sparks_so_that_an_archive_of_sparks_still_fits(installed: Installation) -> None:
    jar = own_classes.jar_in(installed.folder)
    jar.touch()
    words = installed.command({}, [])
    assert words[words.index("-cp") + 1] == f"{installed.class_path}:{jar}"
    assert words[-3:] == ["--conf", "spark.hadoop.fs.file.impl=ottla.LocalFiles", "pyspark-shell"]
    words = installed.command({"spark.hadoop.fs.file.impl": "another"}, [])
    assert words[-3:] == ["--conf", "spark.hadoop.fs.file.impl=another", "pyspark-shell"]


def test_other_classes_of_ours_are_another_jar_and_another_archive(
    installed: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = (own_classes.jar_in(installed.folder), installed.archive)
    (tmp_path / "Changed.java").write_text("package ottla; public class Changed {}")
    monkeypatch.setattr(own_classes, "FOLDER", tmp_path)
    after = (own_classes.jar_in(installed.folder), installed.archive)
    assert not set(before) & set(after)
    assert after[0].stem == after[1].stem


def test_spark_does_without_our_classes_where_they_cannot_be_made(installed: Installation) -> None:
    words = installed.command({}, [])
    assert words[words.index("-cp") + 1] == installed.class_path
    assert "ottla.LocalFiles" not in " ".join(words)


def test_an_archive_is_used_when_there_is_one(installed: Installation) -> None:
    option = f"-XX:SharedArchiveFile={installed.archive}"
    assert option not in installed.command({}, [])
    installed.archive.touch()
    assert option in installed.command({}, [])
    assert option not in installed.command({}, ["-XX:ArchiveClassesAtExit=draft"]), "one that is made is not read"


def test_another_collector_takes_the_place_of_ours(installed: Installation) -> None:
    words = installed.command({"spark.driver.extraJavaOptions": "-XX:+UseG1GC -Dx='a b'"}, [])
    assert "-XX:+UseSerialGC" not in words
    assert words.count("-XX:+UseG1GC") == 1 and "-Dx=a b" in words


def test_a_spark_with_settings_of_its_own_is_left_to_spark_submit(
    installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars x.jar pyspark-shell")
    assert Installation.found() is None
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    (installed.home / "conf").mkdir()
    assert Installation.found() is None
