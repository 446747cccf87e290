"""Two answers to one case, side by side."""

import re

from tests.oracle.cases import Answer, Case, Written

_IN_WORDS = frozenset(f"__streams.errors.{name}" for name in ("exception", "message", "stacktrace"))
_EXTRACTOR = re.compile(r"extractor class: [^)]*\)")


def same_description(theirs: str, ours: str) -> None:
    """Byte for byte; only the name of a lambda that chooses topics is another on every run."""
    assert _EXTRACTOR.sub("extractor class: a function)", ours) == _EXTRACTOR.sub(
        "extractor class: a function)", theirs
    )


def same_outputs(case: Case, theirs: Answer, ours: Answer, *, internal: bool = True) -> None:
    """The same records from every single input; in repartition topics and changelogs, too, if `internal`."""
    assert theirs.error is None, f"{case.name}: {theirs.error}"
    for number, (they, we) in enumerate(zip(theirs.outputs, ours.outputs, strict=True)):
        flushed = {record.topic for record in they if record.timestamp is None}
        expected, found = _settled(they, flushed), _settled(we, flushed)
        if not internal:
            expected, found = _public(expected), _public(found)
        assert found == expected, story(case, number, expected, found)


def _settled(records: list[Written], flushed: set[str]) -> list[Written]:
    """Kafka writes the changelog of suppress at each commit, in the order of a hash set and by the producer's clock."""
    plain = [untold(record) for record in records if record.topic not in flushed]
    return plain + sorted((record._replace(timestamp=None) for record in records if record.topic in flushed), key=str)


def untold(record: Written) -> Written:
    """A dead letter tells of the error in the words of its language."""
    headers = tuple((name, "in words" if name in _IN_WORDS else value) for name, value in record.headers)
    return record._replace(headers=headers)


def _public(records: list[Written]) -> list[Written]:
    return [record for record in records if not record.topic.startswith("oracle-")]


def same_sequences(case: Case, theirs: Answer, ours: Answer) -> None:
    """The same records in every topic in the same order, wherever batches end."""
    assert theirs.error is None, f"{case.name}: {theirs.error}"
    expected, found = _by_topic(theirs), _by_topic(ours)
    for topic in sorted(expected | found):
        they, we = expected.get(topic, []), found.get(topic, [])
        if not any(record.timestamp is None for record in they):
            assert we == they, story(case, len(case.inputs), they, we)


def _by_topic(answer: Answer) -> dict[str, list[Written]]:
    topics: dict[str, list[Written]] = {}
    for record in (record for records in answer.outputs for record in records):
        topics.setdefault(record.topic, []).append(record)
    return topics


def same_stores(case: Case, theirs: Answer, ours: Answer) -> None:
    for name, expected in theirs.stores.items():
        assert ours.stores[name] == expected, f"{case.name}: store {name} holds {ours.stores[name]}, not {expected}"


def story(case: Case, number: int, expected: list[Written], found: list[Written]) -> str:
    """All that is needed to see why."""
    steps = "\n".join(f"  {step}" for step in case.steps)
    inputs = "\n".join(f"  {list(step.values())}" for step in case.inputs[: number + 1])
    outs = [f"  Kafka {tuple(record)}" for record in expected] + [f"  ours  {tuple(record)}" for record in found]
    return "\n".join([f"{case.name}: input {number} differs", steps, "inputs:", inputs, "outputs:", *outs])
