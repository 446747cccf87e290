"""What the pages name is there: modules, files, other pages."""

import re
from pathlib import Path

import pytest

from ottla.connect.settings import SETTINGS as CONNECT
from ottla.model.properties import GROUP, STATIC, TOPIC
from ottla.registry.settings import SETTINGS as REGISTRY
from ottla.sql.settings import SETTINGS as SQL
from ottla.streams.run.config import SETTINGS as STREAMS

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ROOT / "src" / "ottla"
ROOMS = sorted(path.name for path in HOUSE.iterdir() if (path / "__init__.py").exists())
PAGES = {path.name: path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
MODULE = re.compile(rf"`(?:ottla\.)?((?:{'|'.join(ROOMS)})(?:\.[A-Za-z_][A-Za-z_0-9]*)+)`")
FILE = re.compile(r"`((?:src|tests|tools|docs|bench|examples|plugins|requirements)/[\w./-]+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
LONGEST_PAGE_LINES = 130
MADE_UP = "src/ottla/broker/handlers/kNN_name.py"


def is_there(name: str) -> bool:
    """A module, what is defined in one, or a setting, which may look like one."""
    if any(name in table or f"ottla.{name}" in table for table in (STATIC, TOPIC, GROUP, STREAMS, REGISTRY, SQL)):
        return True
    if name in CONNECT or name.removeprefix("connect.") in CONNECT:
        return True
    if name.removeprefix("registry.") in REGISTRY or name.startswith("registry.kafkastore."):
        return True  # in a node's own file they begin with that word
    if name.endswith("security.protocol"):
        return True  # of Kafka's clients, and of every service that is one
    *above, last = name.split(".")
    path = HOUSE.joinpath(*above, last)
    if path.is_dir() or path.with_suffix(".py").exists():
        return True
    owner = HOUSE.joinpath(*above)
    source = owner / "__init__.py" if owner.is_dir() else owner.with_suffix(".py")
    return source.exists() and re.search(rf"\b{last}\b", source.read_text()) is not None


@pytest.mark.parametrize("page", PAGES)
def test_every_module_that_a_page_names_exists(page: str) -> None:
    assert [name for name in MODULE.findall(PAGES[page]) if not is_there(name)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_page_that_a_page_names_exists(page: str) -> None:
    at = ROOT if page == "README.md" else ROOT / "docs"
    assert [path for path in FILE.findall(PAGES[page]) if path != MADE_UP and not (ROOT / path).exists()] == []
    assert [link for link in LINK.findall(PAGES[page]) if not (at / link).exists()] == []


def test_the_plan_of_the_house_has_every_room_and_fits_on_a_page() -> None:
    text = PAGES["ARCHITECTURE.md"]
    drawn = re.findall(r"\w+", text.split("```")[1])
    assert [room for room in ROOMS if room not in drawn] == []
    assert len(text.splitlines()) <= LONGEST_PAGE_LINES


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_tells_how_it_works(room: str) -> None:
    assert (HOUSE / room / "__init__.py").read_text().startswith('"""')
