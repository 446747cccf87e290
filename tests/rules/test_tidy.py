"""The code itself keeps the rules of the house."""

import ast
import gc
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.connect.catalogue import catalogue
from ottla.connect.framework_keys import config_def_of, connector_keys
from ottla.connect.settings import SETTINGS as CONNECT_SETTINGS
from ottla.model.properties import CLIENT_METRICS, DYNAMIC_ONLY, GROUP, STATIC, TOPIC
from ottla.registry.settings import SETTINGS as REGISTRY_SETTINGS
from ottla.sql.settings import SETTINGS as SQL_SETTINGS
from ottla.streams.run.config import SETTINGS as STREAMS_SETTINGS

ROOT = Path(__file__).resolve().parents[2]
Nodes = dict[Path, list[ast.AST]]
CORES = ("model", "protocol", "metadata", "metrics", "raft", "controller", "coordinator", "replication", "security")
UNSAID = re.compile(r"\b(utils?|helpers?|managers?|misc|common)\b")


ARGUMENTS_ARE_FEW = {"_descriptor", "_known", "_meta_validator", "catalogue", "parse"}
"""Functions: files of a table, drafts, the modules of one setting, the parameters of functions."""


@pytest.fixture(scope="module")
def sources() -> Iterator[Nodes]:
    """By module: all nodes of its tree, itself first. Some millions of objects: nobody needs them later, and garbage
    collections would look at each. One inside `ast.parse` that logs a traceback is a SystemError of CPython 3.11.
    """
    paths = [path for path in (ROOT / "src").rglob("*.py") if "_generated" not in path.parts]
    gc.disable()
    try:
        yield {path: list(ast.walk(ast.parse(path.read_text()))) for path in paths}
    finally:
        gc.enable()


def test_every_module_says_what_it_owns(sources: Nodes) -> None:
    trees = {path: nodes[0] for path, nodes in sources.items()}
    silent = [path for path, tree in trees.items() if isinstance(tree, ast.Module) and not ast.get_docstring(tree)]
    assert [str(path) for path in silent if path.read_text()] == []


def test_the_name_of_a_module_says_what_it_does(sources: Nodes) -> None:
    assert [str(path) for path in sources if UNSAID.search(path.stem)] == []


def test_cores_do_not_iterate_sets(sources: Nodes) -> None:
    """Set order differs from run to run: a core that depends on it cannot be simulated."""
    found = []
    for path, nodes in sources.items():
        if path.relative_to(ROOT / "src" / "ottla").parts[0] not in CORES:
            continue
        for node in nodes:
            loops = [node.iter] if isinstance(node, ast.For) else []
            if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
                loops += [generator.iter for generator in node.generators]
            for loop in loops:
                is_set_call = isinstance(loop, ast.Call) and isinstance(loop.func, ast.Name) and loop.func.id == "set"
                if is_set_call or isinstance(loop, ast.Set | ast.SetComp):
                    found.append(f"{path}:{loop.lineno}")
    assert found == []


def test_classes_stay_small(sources: Nodes) -> None:
    wide = []
    for path, nodes in sources.items():
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                attributes = {
                    target.attr
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.Assign | ast.AnnAssign)
                    for target in ([inner.target] if isinstance(inner, ast.AnnAssign) else inner.targets)
                    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
                    if target.value.id == "self"
                }
                if len(attributes) > 17:
                    wide.append(f"{path}:{node.lineno} {node.name} has {len(attributes)} attributes")
    assert wide == []


READS_A_SETTING = frozenset(
    [
        "get_int",
        "find_int",
        "get_float",
        "get_bool",
        "get_str",
        "find_str",
        "get_list",
        "for_listener",
        "throttled_rate",
        "topic_list",
    ]
)
ASKS_FOR_ONE = frozenset(("number", "millis"))
"""Functions inside those that read many."""
HOLDS_SETTINGS = frozenset(("settings", "_settings", "config", "given"))
ROWS = catalogue().rows
CONNECT = (
    *CONNECT_SETTINGS,
    *(name for row in ROWS for name in config_def_of(row).keys),
    *(name for row in ROWS if row.kind.is_connector for name in connector_keys(catalogue(), row).keys),
)
SETTINGS = frozenset(
    (
        *STATIC,
        *DYNAMIC_ONLY,
        *TOPIC,
        *GROUP,
        *CLIENT_METRICS,
        *STREAMS_SETTINGS,
        *REGISTRY_SETTINGS,
        *CONNECT,
        *SQL_SETTINGS,
    )
)


def test_every_setting_that_the_code_names_is_declared_in_a_table(sources: Nodes) -> None:
    """Else the first to ask for it would find out, by a KeyError."""
    named = [(path, *found) for path, nodes in sources.items() for found in _settings_named(nodes)]
    assert [f"{path.relative_to(ROOT)}:{line} {name}" for path, name, line in named if name not in SETTINGS] == []
    assert len(named) > 150


def _settings_named(nodes: list[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if isinstance(node, ast.Call) and (
            (isinstance(node.func, ast.Attribute) and node.func.attr in READS_A_SETTING)
            or (isinstance(node.func, ast.Name) and node.func.id in ASKS_FOR_ONE)
        ):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and "." in str(argument.value):
                    yield str(argument.value), node.lineno
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            holder = node.value
            named = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
            if named in HOLDS_SETTINGS and "." in str(node.slice.value):
                yield str(node.slice.value), node.lineno


def test_what_is_remembered_by_what_others_say_has_an_end(sources: Nodes) -> None:
    """`@cache` is for arguments of which the program itself has a few; `lru_cache` forgets."""
    found = {
        node.name
        for nodes in sources.values()
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.args.args
        if any(ast.unparse(each) in ("cache", "functools.cache") for each in node.decorator_list)
    }
    assert found == ARGUMENTS_ARE_FEW


def test_texts_are_utf_8_whatever_the_locale(sources: Nodes) -> None:
    unsaid = [
        f"{path}:{node.lineno}"
        for path, nodes in sources.items()
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in ("read_text", "write_text") and "encoding" not in [each.arg for each in node.keywords]
    ]
    assert unsaid == []


def test_nobody_asks_whether_an_exception_is_true(sources: Nodes) -> None:
    """It always is, also with an empty text, such as asyncio's TimeoutError has: `str(error) or ...` is meant."""
    asked = [
        f"{path}:{inner.lineno}: {ast.unparse(inner)}"
        for path, nodes in sources.items()
        for node in nodes
        if isinstance(node, ast.ExceptHandler) and node.name
        for inner in ast.walk(node)
        if isinstance(inner, ast.BoolOp) and isinstance(inner.op, ast.Or)
        if isinstance(inner.values[0], ast.Name) and inner.values[0].id == node.name
    ]
    assert asked == []


def test_the_logger_of_a_module_is_called_logger(sources: Nodes) -> None:
    others = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, nodes in sources.items()
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if ast.unparse(node.value.func) in ("logging.getLogger", "getLogger")
        if ast.unparse(node.targets[0]) != "logger"
    ]
    assert others == []


def test_spark_is_imported_where_it_runs_and_nowhere_else(sources: Nodes) -> None:
    """The rest works without pyspark installed: a broker, the command line, a topology in a test."""
    rooms = ("pipelines", "streams/run", "connect/jobs", "sql/history")
    found = [
        str(path.relative_to(ROOT))
        for path, (tree, *_) in sources.items()
        if not path.relative_to(ROOT / "src" / "ottla").as_posix().startswith(rooms)
        for names in _imports(tree)
        if any(name.split(".")[0] == "pyspark" for name in names)
    ]
    assert found == []


def _imports(tree: ast.AST) -> Iterator[list[str]]:
    """What is imported when the code runs: names in annotations bind nobody."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            yield [node.module or ""]
        yield from _imports(node)


@pytest.mark.parametrize("path", ["requirements", "pyproject.toml", "Makefile", ".ci", "bench", "tests", "tools"])
def test_no_registry_address_is_committed(path: str) -> None:
    root = ROOT / path
    files = [root] if root.is_file() else [f for f in root.rglob("*") if f.is_file() and "node_modules" not in f.parts]
    hosts = rb"maven|pypi|pythonhosted|npmjs|crates|proxy\.golang|debian"
    # The name space of a pom is a name, not an address.
    address = re.compile(rb"https?://(?!maven\.apache\.org/(?:POM|xsd))[a-z0-9.-]*(?:" + hosts + rb")[a-z0-9.-]*")
    assert [str(f) for f in files if f.suffix != ".pyc" and address.search(f.read_bytes())] == []


def test_what_make_test_leaves_out_is_run_by_make_matrix() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nmatrix:")[2].partition("\n\n")[0]
    marked = {
        f"tests/{path.relative_to(ROOT / 'tests').parts[0]}"
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark.matrix" in path.read_text() and path.name != "test_tidy.py"
    }
    assert sorted(folder for folder in marked if folder not in recipe) == []


def test_the_plugin_inside_the_wheel_has_the_wheels_version() -> None:
    ottla, plugin = (
        tomllib.loads((ROOT / path / "pyproject.toml").read_text()) for path in (".", "plugins/pytest-ottla")
    )
    assert plugin["project"]["version"] == ottla["project"]["version"]
