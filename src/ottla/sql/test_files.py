"""Query tests in files: YAML with what `testing.run` takes and gives.

    tests:
      - name: upper case
        statements:
          - CREATE STREAM s (id INT KEY, v STRING) WITH (kafka_topic='t', value_format='JSON');
          - CREATE STREAM o AS SELECT id, UCASE(v) AS v FROM s;
        inputs: [{topic: t, key: 1, value: {v: a}}]
        outputs: [{topic: O, key: 1, value: {V: A}}]

`file: NAME` instead of `statements` names a file of them beside this one. Of an output, and of a source under
`sources`, only what is said is compared. `error: {code, message, line, column}` says that the statements are refused;
the message has to contain the text. `properties` and `topics` are those of `run`. Numbers with a fraction compare as
numbers, whether they are decimals or doubles.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from ottla.sql.errors import SqlError
from ottla.sql.testing import run

_KNOWN: Final = frozenset(
    ("name", "file", "statements", "inputs", "outputs", "sources", "error", "properties", "topics")
)


class TestFileError(Exception):
    """A file that is none of query tests: the message says where and why."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class QueryTest:
    __test__ = False

    name: str
    given: Mapping[str, Any]

    def failures(self, engine: str = "driver") -> list[str]:
        """What is not as it should be, a line each; none: it passed."""
        expected = self.given.get("error")
        try:
            outputs, sources = run(
                self.given.get("statements", ""),
                self.given.get("inputs") or [],
                self.given.get("properties") or {},
                self.given.get("topics") or [],
                engine,
            )
        except SqlError as error:
            return [f"refused: {error}"] if expected is None else list(_differing_error(expected, error))
        if expected is not None:
            return ["the statements were to be refused, and were not"]
        return [*_differing_outputs(self.given, outputs), *_differing_sources(self.given, sources)]


def load(text: str, path: str) -> list[QueryTest]:
    import yaml  # noqa: PLC0415  whoever tests no files does not need it

    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise TestFileError(f"{path} is no YAML: {error}") from None
    tests = document.get("tests") if isinstance(document, dict) else None
    if not isinstance(tests, list) or not tests:
        raise TestFileError(f"{path} has no list of `tests`")
    return [_test(each, number, path) for number, each in enumerate(tests, 1)]


def _test(given: Any, number: int, path: str) -> QueryTest:
    if not isinstance(given, dict) or not ("statements" in given or "file" in given):
        raise TestFileError(f"{path}: test {number} has no `statements`, and no `file` of them")
    unknown = sorted(str(name) for name in given if name not in _KNOWN)
    if unknown:
        raise TestFileError(f"{path}: test {number} has {unknown[0]!r}; there are {', '.join(sorted(_KNOWN))}")
    if "file" in given:
        given = {**given, "statements": _of_file(str(given["file"]), path) + "\n" + str(given.get("statements", ""))}
    return QueryTest(str(given.get("name", f"test {number}")), given)


def _of_file(name: str, path: str) -> str:
    """Statements that lie beside the tests."""
    file = Path(path).parent / name
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TestFileError(f"{path}: {file} cannot be read: {error}") from None


# ---- comparing


def _differing_error(expected: Mapping[str, Any], error: SqlError) -> Iterator[str]:
    for name in ("code", "line", "column"):
        if name in expected and expected[name] != getattr(error, name):
            yield f"{name} of the error: {expected[name]} expected, found {getattr(error, name)}"
    if str(expected.get("message", "")) not in error.message:
        yield f"the error was to say {expected['message']!r}, but says {error.message!r}"


def _differing_outputs(given: Mapping[str, Any], found: list[dict[str, Any]]) -> Iterator[str]:
    if "outputs" not in given:
        return
    expected = given["outputs"] or []
    topics = {each.get("topic") for each in expected}
    shown = [each for each in found if each["topic"] in topics] if topics else found
    for place, wanted in enumerate(expected):
        if place >= len(shown):
            yield f"output {place + 1}: {dict(wanted)} expected, but there are only {len(shown)}"
            return
        for name, value in wanted.items():
            if not same(value, shown[place].get(name)):
                yield f"output {place + 1}: {name} {value!r} expected, found {shown[place].get(name)!r}"
    for extra in shown[len(expected) :]:
        yield f"not expected: {extra}"


def _differing_sources(given: Mapping[str, Any], found: list[dict[str, Any]]) -> Iterator[str]:
    by_name = {each["name"]: each for each in found}
    for wanted in given.get("sources") or []:
        there = by_name.get(wanted["name"])
        if there is None:
            yield f"there is no source {wanted['name']}"
            continue
        for name, value in wanted.items():
            if there.get(name) != value:
                yield f"source {wanted['name']}: {name} {value!r} expected, found {there.get(name)!r}"


def same(expected: Any, found: Any) -> bool:
    """Equal, whatever kind of number a number is; but a boolean is none."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(same(each, found[key]) for key, each in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, float) and isinstance(found, Decimal):
        return Decimal(repr(expected)) == found
    return bool(expected == found)
