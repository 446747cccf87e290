"""Several cases as one topology over the same input topics: a Spark query costs seconds, a node more in it does not."""

from collections.abc import Sequence
from typing import Any

from tests.oracle.cases import Case, Input, Step

OPTIONS = (
    "consumed", "grouped", "repartitioned", "joined", "stream_joined", "table_joined", "produced", "materialized",
    "processor", "transformer",
)  # fmt: skip


def bundled(name: str, cases: Sequence[Case], inputs: Sequence[Input], topics: str = "") -> Case:
    """Their steps side by side. Names, stores and output topics get a number each; all topics begin with `topics`."""
    steps = [_renamed(step, number, topics) for number, case in enumerate(cases) for step in case.steps]
    fed = [step | {"topic": topics + step["topic"]} if "topic" in step else step for step in inputs]
    return Case(name, steps, list(fed))


def _renamed(step: Step, number: int, topics: str) -> Step:
    def mine(text: Any) -> Any:
        return f"{text}-{number}" if isinstance(text, str) else text

    result = dict(step)
    for place in ("in", "out", "other", "name"):
        if place in result:
            result[place] = mine(result[place])
    if "topics" in result:
        result["topics"] = [topics + topic for topic in result["topics"]]
    if "topic" in result:
        result["topic"] = topics + (mine(result["topic"]) if step["op"] == "to" else result["topic"])
    if "stores" in result:
        result["stores"] = [mine(store) for store in result["stores"]]
    for branch in [*result.get("branches", ()), result.get("default")]:
        if branch is not None:
            branch["out"] = mine(branch["out"])
    for options in OPTIONS:
        if options in result:
            result[options] = {k: mine(v) if k in ("name", "store") else v for k, v in result[options].items()}
    return result
