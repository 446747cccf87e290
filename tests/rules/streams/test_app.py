"""An application before it runs: its name, its settings, the file it is in."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ottla.streams
from ottla.pipelines.installed import java_version
from ottla.streams import StreamsBuilder
from ottla.streams.app import StreamsApp
from ottla.streams.app_file import AppFileError, load
from ottla.streams.dsl.options import Grouped, Materialized
from ottla.streams.errors import StreamsError
from ottla.streams.run.config import CONTINUE, FAIL, SETTINGS, Config, ConfigError, reset_of
from ottla.streams.run.state_directory import AlreadyRunning, StateDirectory
from ottla.streams.serdes import Serdes
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import Reset, ResetByDuration
from ottla.streams.topology.topology import Topology
from ottla.streams.windows import TimeWindows


def topology() -> Topology:
    made = Topology()
    made.add_source("in", "lines")
    made.add_sink("out", "lines-again", "in")
    return made


# ---- settings


def test_settings_have_kafkas_names_with_dots_or_as_python_writes_them() -> None:
    config = Config({"commit_interval_ms": 50, "state.dir": "/var/lib/streams"})
    assert config["commit.interval.ms"] == 50
    assert config["state.dir"] == "/var/lib/streams"
    assert dict(config.given) == {"commit.interval.ms": 50, "state.dir": "/var/lib/streams"}


def test_every_default_is_a_value_that_the_setting_would_take() -> None:
    for setting in SETTINGS.values():
        assert Config({setting.name: setting.default})[setting.name] == setting.default, setting.name


EITHER_WAY = "processing.guarantee"
"""Output is written exactly once whatever it says, which its line in the guide tells."""


def test_every_setting_is_read_by_somebody() -> None:
    rooms = Path(ottla.streams.__path__[0])
    tables = {rooms / "run" / "config.py"}
    code = "".join(path.read_text() for path in rooms.rglob("*.py") if path not in tables)
    for name in SETTINGS.keys() - {EITHER_WAY, "client.settings.file"}:  # the latter by the table itself
        assert re.search(rf"""["']{re.escape(name)}["']""", code), f"nobody reads {name}"


def test_texts_become_what_the_setting_is() -> None:
    config = Config(
        {
            "commit.interval.ms": "50",
            "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
            "default.value.serde": "org.apache.kafka.common.serialization.Serdes$UUIDSerde",
            "deserialization.exception.handler": "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler",
            "ensure.explicit.internal.resource.naming": "true",
        }
    )
    assert config["commit.interval.ms"] == 50
    assert config["default.key.serde"] is Serdes.string
    assert config["default.value.serde"] is Serdes.uuid
    assert config["deserialization.exception.handler"] == CONTINUE
    assert config["processing.exception.handler"] == FAIL
    assert config["ensure.explicit.internal.resource.naming"] is True


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("commit.intervall.ms", 1, "commit.intervall.ms is not a setting .*: did you mean commit.interval.ms?"),
        ("nonsense", 1, "nonsense is not a setting of a streams application; there are bootstrap.servers"),
        ("commit.interval.ms", "soon", "commit.interval.ms: 'soon' is not a whole number"),
        ("commit.interval.ms", -1, "commit.interval.ms: '-1' is not allowed: allowed is 0 or more"),
        ("commit.interval.ms", True, "commit.interval.ms: True is not of the type long"),
        (
            "auto.offset.reset",
            "now",
            "auto.offset.reset: 'now' is not allowed: allowed is one of earliest, latest, none",
        ),
        ("default.key.serde", "avro", "default.key.serde: 'avro': a serde or one of string, bytes"),
        ("processing.exception.handler", "ignore", "fail, continue or a callable is expected"),
        ("default.dsl.store", "heap", "default.dsl.store: 'heap' is not allowed: allowed is one of rocksDB, in_memory"),
        (
            "dsl.store.suppliers.class",
            "acme.Mine",
            "RocksDBDslStoreSuppliers or InMemoryDslStoreSuppliers is expected",
        ),
        ("application.server", "8088", "application.server: '8088' is not allowed: HOST:PORT is expected"),
        ("application.id", "x", "application.id is the first argument of StreamsApp"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_what_can(name: str, value: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Config({name: value})


def test_settings_of_spark_and_of_topics_pass_and_those_without_meaning_are_told() -> None:
    config = Config({"spark.sql.shuffle.partitions": 4, "topic.retention.ms": "1000", "num.standby.replicas": 1})
    assert config.below("spark.") == {"spark.sql.shuffle.partitions": "4"}
    assert config.below("topic.") == {"retention.ms": "1000"}
    assert config.without_effect == ("num.standby.replicas",)


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("earliest", Reset.EARLIEST),
        ("none", Reset.NONE),
        ("by_duration:PT0.5S", Reset.by_duration(500)),
        ("by_duration:P1DT2H3M4S", Reset.by_duration(93_784_000)),
    ],
)
def test_where_an_input_begins_may_be_said_by_a_duration(text: str, reset: Reset | ResetByDuration) -> None:
    assert reset_of(Config({"auto.offset.reset": text})["auto.offset.reset"]) == reset


@pytest.mark.parametrize(
    "setting",
    [
        {"default.dsl.store": "in_memory"},
        {"dsl.store.suppliers.class": "org.apache.kafka.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"},
    ],
)
def test_stores_of_tables_are_as_the_setting_says_unless_they_say_it_themselves(setting: dict[str, str]) -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows.of(10, grace_ms=100))
    windowed.count(Materialized("whatever"))
    windowed.count(Materialized("by-key", store_type="rocksDB"))
    with TopologyTestDriver(builder.build(), config=setting) as driver:
        driver.create_input_topic("in").pipe_many([("b", "x", 0), ("a", "x", 10)])
        found = {name: [key.key for key, _ in driver.get_window_store(name).all()] for name in ("whatever", "by-key")}
    assert found == {"whatever": ["b", "a"], "by-key": ["a", "b"]}


# ---- the application


@pytest.mark.parametrize("name", ["", "with space", "käse", "a/b", "..", "x" * 201])
def test_an_application_id_begins_names_of_topics_and_has_to_look_like_one(name: str) -> None:
    with pytest.raises(ConfigError, match=r"application\.id"):
        StreamsApp(name, topology())


def test_cleaning_up_deletes_the_folder_of_an_application_that_does_not_run(tmp_path: Path) -> None:
    app = StreamsApp("orders", topology(), state_dir=str(tmp_path))
    other = tmp_path / "others" / "checkpoints"
    for folder in (tmp_path / "orders" / "checkpoints", other):
        folder.mkdir(parents=True)
    app.clean_up()
    assert (StateDirectory.of(app).contents(), other.exists()) == ([], True)
    with StateDirectory.of(app).held({}), pytest.raises(AlreadyRunning):
        app.clean_up()
    with pytest.raises(StreamsError, match="s3a://bucket/orders is no folder of this machine"):
        StreamsApp("orders", topology(), state_dir="s3a://bucket").clean_up()


def test_an_application_is_changed_by_making_another() -> None:
    first = StreamsApp("orders", topology(), commit_interval_ms=50)
    second = first.changed(application_id="orders-v2", config={"state.dir": "elsewhere"})
    assert (first.application_id, dict(first.config.given)) == ("orders", {"commit.interval.ms": 50})
    assert second.application_id == "orders-v2"
    assert dict(second.config.given) == {"commit.interval.ms": 50, "state.dir": "elsewhere"}
    assert second.topology is first.topology
    assert second.marker_topic == "orders-v2-ottla-batches"


def counting(name: str | None, topic: str | None) -> Topology:
    texts = Serdes.string
    builder = StreamsBuilder(default_key_serde=texts, default_value_serde=texts)
    by_length = builder.stream("lines").group_by(lambda _, line: str(len(line)), Grouped(name=topic))
    by_length.count(Materialized(name)).to_stream().to("counts")
    return builder.build()


def test_where_names_are_to_be_given_a_store_or_topic_with_a_made_up_one_is_refused() -> None:
    strict = {"ensure.explicit.internal.resource.naming": True}
    StreamsApp("app", counting(None, None))
    StreamsApp("app", counting("by-length", "lengths"), **strict)
    with pytest.raises(TopologyError, match="the store KSTREAM-AGGREGATE-STATE-STORE-0000000003, the topic KSTREAM-"):
        StreamsApp("app", counting(None, None), **strict)
    with pytest.raises(TopologyError, match=r"nobody has named the store KSTREAM-\S+-\d{10}\. "):
        StreamsApp("app", counting(None, "lengths"), **strict)


def test_a_builder_is_not_a_topology() -> None:
    from ottla.streams.dsl.builder import StreamsBuilder  # noqa: PLC0415

    with pytest.raises(TypeError, match=r"pass builder\.build\(\)"):
        StreamsApp("orders", StreamsBuilder())  # type: ignore[arg-type]


def test_an_application_is_made_and_described_without_spark() -> None:
    program = (
        "import sys\n"
        "from ottla.streams import Consumed, Produced, Serdes, StreamsApp, StreamsBuilder\n"
        "import ottla.cli.streams, ottla.streams.run.reset, ottla.streams.views.server\n"
        "heavy = sorted({'pyspark', 'pandas', 'numpy', 'pyarrow'} & sys.modules.keys())\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("release", "version"), [('JAVA_VERSION="17.0.15"\n', 17), ('JAVA_VERSION="1.8.0_392"\n', 8), ("", None)]
)
def test_the_version_of_java_is_read_from_its_release_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, version: int | None
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    (tmp_path / "release").write_text(release)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_version() == version


# ---- the file

HEAD = "from ottla.streams import StreamsApp, Topology\n"


def written(path: Path, text: str) -> str:
    file = path / "my_app.py"
    file.write_text(text)
    return str(file)


@pytest.fixture
def _own_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")


@pytest.mark.usefixtures("_own_paths")
def test_a_file_gives_its_app_and_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_my_app.py").write_text("NAME = 'orders'\n")
    text = (
        HEAD
        + "from beside_my_app import NAME\ntopology = Topology()\ntopology.add_source('in', 'lines')\n"
        + "app = StreamsApp(NAME, topology)\n"
    )
    app, module = load(written(tmp_path, text))
    assert app.application_id == "orders"
    assert module.app is app
    sys.modules.pop("beside_my_app")


@pytest.mark.usefixtures("_own_paths")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD, r"my_app\.py defines no `app`"),
        (HEAD + "app = Topology()\n", r"`app` in .*my_app\.py is a Topology, not a StreamsApp"),
        (HEAD + "\nthis is no Python\n", r"my_app\.py, line 3: SyntaxError"),
        (
            HEAD + "\ntopology = Topology()\ntopology.add_sink('out', 't')\n",
            r"my_app\.py, line 4: TopologyError: out has",
        ),
        (HEAD + "app = StreamsApp('a b', Topology())\n", r"my_app\.py, line 2: ConfigError: application\.id='a b'"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(AppFileError, match=says):
        load(written(tmp_path, text))


def test_an_error_in_a_module_beside_the_file_is_told_with_its_own_line_and_those_that_led_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "own_rates.py").write_text('RATES = {}\nEURO = RATES["euro"]\n')
    path = written(tmp_path, "import json\nimport own_rates\n")
    with pytest.raises(AppFileError) as refused:
        load(path)
    assert str(refused.value).splitlines() == [
        f"{tmp_path}/own_rates.py, line 2: KeyError: 'euro'",
        f'  File "{path}", line 2, in <module>',
        "    import own_rates",
        f'  File "{tmp_path}/own_rates.py", line 2, in <module>',
        '    EURO = RATES["euro"]',
        "           ~~~~~^^^^^^^^",
    ]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AppFileError, match=r"none\.py: there is no such file"):
        load(str(tmp_path / "none.py"))


# ---- the guide


def test_the_guide_lists_every_setting_with_its_default() -> None:
    lines = (Path(__file__).parents[3] / "docs" / "STREAMS.md").read_text().splitlines()
    for setting in SETTINGS.values():
        value = str(setting.default).lower() if isinstance(setting.default, bool) else setting.default
        default = "" if value in (None, "") else f"`{value}`"
        assert f"| `{setting.name}` | {default} | {setting.doc} |" in lines
