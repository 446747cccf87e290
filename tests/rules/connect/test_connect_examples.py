"""The examples, tried as their readers would: without a broker and without Spark."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.connectors.file_source import FileStreamSource
from ottla.testing import connect
from tests.platform.systems.http_server import Answer, commanded_server

FOLDER = Path(__file__).parents[3] / "examples" / "connect"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield import_module
    for name in set(sys.modules) - before:
        del sys.modules[name]


def config_of(name: str, **more: str) -> dict[str, str]:
    return {**json.loads((FOLDER / f"{name}.json").read_text())["config"], **more}


def test_the_weather_is_a_record_for_each_new_observation(example: Any) -> None:
    times = iter(["12:00", "12:00", "12:15", "12:15"])
    with commanded_server() as server:
        server.answer = lambda _: Answer(
            body=json.dumps({"current_weather": {"time": next(times), "temperature": 7.5}}).encode()
        )
        config = config_of("weather", url=server.url)
        first = connect(example("weather").Weather, config)
        assert first.values == [{"time": "12:00", "temperature": 7.5}]
        assert connect(example("weather").Weather, config, start=first.offset).values[0]["time"] == "12:15"


def test_what_the_chat_refuses_is_a_letter(example: Any) -> None:
    with commanded_server() as server:
        server.answer = lambda got: Answer(400) if b"rude" in got.body else Answer()
        config = config_of("chat", **{"webhook.url": server.url})
        tried = connect(example("chat").Chat, config, ["hello", "rude"], topic="alerts")
        assert [json.loads(got.body) for got in server.taken] == [{"text": "alerts: hello"}]
    assert [letter.failure.message for letter in tried.letters] == ["the chat answered 400"]


def test_a_transform_of_ones_own_is_named_by_where_it_is(example: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("hush\n")
    tried = connect(FileStreamSource, config_of("loud", file=str(tmp_path / "in")))
    assert [record.value for record in tried.records] == [b"HUSH"]


@pytest.mark.parametrize("name", ["weather", "chat", "loud"])
def test_an_example_is_about_twenty_lines(name: str) -> None:
    code = (FOLDER / f"{name}.py").read_text().split('"""')[2]
    assert len([line for line in code.splitlines() if line.strip() and "import" not in line]) <= 26
