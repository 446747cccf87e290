"""`ottla streams package`: what is in an archive, and an application out of it."""

import zipfile
from pathlib import Path

import pytest

from ottla.streams import archive
from ottla.streams.app_file import AppFileError, load

APP = """
from {beside} import TOPIC
from ottla.streams import StreamsApp, StreamsBuilder

builder = StreamsBuilder()
builder.stream(TOPIC).to("out")
app = StreamsApp("{beside}", builder.build())
"""


def packed(folder: Path, beside: str, *, more: tuple[Path, ...] = ()) -> Path:
    """A name of its own for what lies beside it: modules stay imported."""
    (folder / f"{beside}.py").write_text("TOPIC = 'in'\n")
    (folder / "unused.py").write_text("raise AssertionError\n")
    file = folder / "app_of_mine.py"
    file.write_text(APP.format(beside=beside))
    _, module = load(str(file))
    target = folder / "packed.zip"
    archive.write(target, module, more_files=more, bare=True)
    return target


def test_the_application_what_it_imported_and_ottla_are_in_it(tmp_path: Path) -> None:
    names = zipfile.ZipFile(packed(tmp_path, "beside_one")).namelist()
    ours = [name for name in names if not name.startswith("site/")]
    assert ours == ["run.py", "application.txt", "app/app_of_mine.py", "app/beside_one.py"]
    assert "site/ottla/streams/app.py" in names
    assert not [name for name in names if "__pycache__" in name]


def test_files_and_folders_can_be_added_beside_the_application(tmp_path: Path) -> None:
    (tmp_path / "models" / "deep").mkdir(parents=True)
    (tmp_path / "models" / "deep" / "one.json").write_text("{}")
    (tmp_path / "rates.csv").write_text("a,b")
    names = zipfile.ZipFile(
        packed(tmp_path, "beside_two", more=(tmp_path / "models", tmp_path / "rates.csv"))
    ).namelist()
    assert {"app/models/deep/one.json", "app/rates.csv"} <= set(names)
    with pytest.raises(archive.CannotArchive, match="nothing-here: there is no such file or folder"):
        packed(tmp_path, "beside_two", more=(Path("nothing-here"),))


def test_an_application_is_loaded_out_of_its_archive(tmp_path: Path) -> None:
    target = packed(tmp_path, "beside_three")
    for file in tmp_path.glob("*.py"):
        file.unlink()
    app, module = load(str(target))
    assert app.application_id == "beside_three"
    assert Path(module.__file__ or "").name == "app_of_mine.py"


def test_another_zip_file_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("hello.txt", "hello")
    with pytest.raises(AppFileError, match="was not made by `ottla streams package`"):
        load(str(tmp_path / "other.zip"))


def test_what_ottla_needs_is_carried_and_what_spark_brings_is_not() -> None:
    carried = set(archive._needed([("ottla", ("streams",))]))
    assert {"pyarrow", "crc32c", "numpy"} <= carried
    assert not carried & {"pyspark", "py4j", "ottla", "pytest"}


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(archive.CannotArchive, match="no-such-package is not installed here"):
        list(archive._needed([("no-such-package", ())]))
