"""Which classes a config may name by `module:Class`: to import a module is to run it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.connect import catalogue as rooms
from ottla.connect.catalogue import ANY_MODULE, catalogue
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.plugins import Catalogue, PluginType
from ottla.connect.providers import Providers
from ottla.connect.settings import ConnectSettings
from ottla.connect.spi import ConfigRefused
from ottla.connect.validation import Judge, NotJudged

SOURCE = """
from ottla.connect import spi
from ottla.connect.converters.string import StringConverter
from ottla.connect.predicates.base import Predicate
from ottla.connect.transforms.base import Transform

class Config(spi.Config):
    topic: str = "t"

class Own(spi.Source[Config]):
    def read(self, start, limit):
        return spi.Read((), None)

class Loud(Transform):
    def apply(self, record):
        return record

class Always(Predicate):
    def test(self, record):
        return True

class Text(StringConverter):
    pass
"""
CONFIG = {
    "name": "own",
    "connector.class": "own_plugins:Own",
    "key.converter": "own_plugins:Text",
    "header.converter": "own_plugins:Text",
    "transforms": "loud",
    "transforms.loud.type": "own_plugins:Loud",
    "transforms.loud.predicate": "always",
    "predicates": "always",
    "predicates.always.type": "own_plugins:Always",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_plugins.py").write_text(SOURCE)
    (tmp_path / "ends_programs.py").write_text("raise SystemExit(3)\n")
    before = set(sys.modules)
    _forget()
    yield tmp_path
    _forget()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def _forget() -> None:
    catalogue.cache_clear()
    rooms._brought.cache_clear()


def errors(config: dict[str, str], plugins: Catalogue) -> list[str]:
    found = Judge({}, Providers({}), catalogue=plugins).judge(config)
    return [error for _, value in found.configs for error in value.errors]


def test_a_module_that_nobody_named_is_not_imported() -> None:
    with pytest.raises(NotJudged, match=r"The module own_plugins is none that configs may name: connect\.plugin"):
        errors(CONFIG, catalogue())
    with pytest.raises(ConfigRefused, match="own_plugins is none that configs may name"):
        JobSpec("own", CONFIG, "", "", "", "").plugin()
    parts = {name: value for name, value in CONFIG.items() if name != "connector.class"}
    config = {**parts, "connector.class": "FileStreamSource", "file": "/none", "topic": "t"}
    refused = [value for _, value in Judge({}, Providers({}), catalogue=catalogue()).judge(config).configs]
    assert {value.name for value in refused if any("none that configs may name" in each for each in value.errors)} == {
        "key.converter",
        "header.converter",
        "transforms.loud.type",
        "predicates.always.type",
    }
    assert "own_plugins" not in sys.modules


def test_one_that_the_worker_names_gives_connectors_transforms_predicates_and_converters_alike() -> None:
    assert errors(CONFIG, catalogue(("own_plugins",))) == []
    assert JobSpec("own", CONFIG, "", "", "", "", modules=["own_plugins"]).plugin().__name__ == "Own"


def test_a_package_is_named_with_all_that_is_in_it(folder: Path) -> None:
    (folder / "own_package").mkdir()
    (folder / "own_package" / "inner.py").write_text(SOURCE)
    (folder / "own_packages.py").write_text(SOURCE)
    plugins = catalogue(("own_package",))
    assert plugins.find("own_package.inner:Own") is not None
    assert plugins.find("own_packages:Own") is None


def test_a_distribution_that_names_itself_names_its_modules(folder: Path) -> None:
    info = folder / "own-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ottla.connectors]\nown = own_plugins:Own\nloud = own_plugins:Loud\n")
    (info / "RECORD").write_text("own_plugins.py,,\nown_more.py,,\n")
    (folder / "own_more.py").write_text(SOURCE)
    plugins = catalogue()
    assert plugins.find("own") == plugins.find("own_plugins:Own")
    assert plugins.find("loud", PluginType.TRANSFORMATION) == plugins.find("own_plugins:Loud")
    assert errors({**CONFIG, "connector.class": "own_more:Own"}, plugins) == []
    assert plugins.find("ends_programs:Own") is None
    assert "ends_programs" not in sys.modules


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ends_programs:Own", " It cannot be loaded: ends_programs cannot be imported: SystemExit: 3."),
        ("nowhere_at_all:Own", " It cannot be loaded: No module named 'nowhere_at_all'."),
        ("own_plugins:Owl", " It cannot be loaded: module 'own_plugins' has no attribute 'Owl'."),
        ("own_plugins:Loud", " It is no source or sink."),
    ],
)
def test_what_cannot_be_loaded_says_why_and_ends_nothing(name: str, why: str) -> None:
    with pytest.raises(NotJudged) as refused:
        errors({**CONFIG, "connector.class": name}, catalogue(ANY_MODULE))
    assert str(refused.value).endswith(f"{why}")


def test_a_class_of_our_own_may_be_named_by_where_it_is() -> None:
    found = catalogue().find("ottla.connect.connectors.file_sink:FileStreamSink")
    assert found == catalogue().find("FileStreamSink")
    assert found is not None


def test_the_setting_is_a_list() -> None:
    assert ConnectSettings.of({"connect.plugin.modules": "a, b.c"})["connect.plugin.modules"] == ("a", "b.c")
