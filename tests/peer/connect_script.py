"""One conversation with a Connect worker, to be held with Java's and with ours."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.connect_workers import Answered, ask, until

SOURCE = {"connector.class": "FileStreamSource", "file": "/nonexistent/in.txt", "topic": "lines"}
SINK = {"connector.class": "FileStreamSink", "file": "/tmp/worker/sink.txt", "topics": "lines", "tasks.max": "2"}
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


class Step(NamedTuple):
    method: str
    path: str
    body: Any = None
    before: tuple[str, Callable[[Answered], bool]] | None = None
    """A path that is asked until its answer is so."""


def is_state(name: str, state: str, tasks: int) -> tuple[str, Callable[[Answered], bool]]:
    def holds(answer: Answered) -> bool:
        if answer.status != 200:
            return False
        states = [task["state"] for task in answer.body["tasks"]]
        return answer.body["connector"]["state"] == state and states == [state] * tasks

    return f"/connectors/{name}/status", holds


def is_gone(name: str) -> tuple[str, Callable[[Answered], bool]]:
    return f"/connectors/{name}/status", lambda answer: answer.status == 404


def steps(sink_file: str) -> list[Step]:
    sink = {**SINK, "file": sink_file}
    mask = {"transforms": "m", "transforms.m.type": "org.apache.kafka.connect.transforms.MaskField$Value"}
    return [
        Step("GET", "/"),
        Step("GET", "/health"),
        Step("GET", "/connectors"),
        Step("GET", "/connectors?expand=status"),
        Step("GET", "/connectors/x"),
        Step("GET", "/connectors/x/config"),
        Step("GET", "/connectors/x/status"),
        Step("GET", "/connectors/x/tasks"),
        Step("GET", "/connectors/x/tasks/0/status"),
        Step("GET", "/connectors/x/topics"),
        Step("GET", "/connectors/x/offsets"),
        Step("PUT", "/connectors/x/topics/reset"),
        Step("PUT", "/connectors/x/pause"),
        Step("PUT", "/connectors/x/resume"),
        Step("PUT", "/connectors/x/stop"),
        Step("POST", "/connectors/x/restart"),
        Step("POST", "/connectors/x/restart?includeTasks=true"),
        Step("POST", "/connectors/x/tasks/0/restart"),
        Step("DELETE", "/connectors/x"),
        Step("DELETE", "/connectors/x/offsets"),
        Step("PATCH", "/connectors/x/config", {"a": "b"}),
        Step("POST", "/connectors", {"name": "s", "config": {}}),
        Step("POST", "/connectors", {"name": "s", "config": {"connector.class": "Nothing"}}),
        Step("POST", "/connectors", {"name": "s", "config": {**SOURCE, "name": "other"}}),
        Step("POST", "/connectors", {"name": "s", "config": {**SOURCE, "tasks.max": "x"}}),
        Step("POST", "/connectors", {"name": "", "config": SOURCE}),
        Step("POST", "/connectors", {"name": "s", "config": SOURCE, "initial_state": "STOPPED"}),
        Step("GET", "/connectors/s/status", before=is_state("s", "STOPPED", 0)),
        Step("GET", "/connectors/s/tasks"),
        Step("GET", "/connectors/s"),
        Step("PATCH", "/connectors/s/offsets", {"offsets": []}),
        Step("PATCH", "/connectors/s/offsets", {}),
        Step(
            "PATCH",
            "/connectors/s/offsets",
            {"offsets": [{"partition": {"filename": "/a"}, "offset": {"position": 4}}]},
        ),
        Step("GET", "/connectors/s/offsets"),
        Step("PATCH", "/connectors/s/offsets", {"offsets": [{"partition": {"filename": "/a"}, "offset": None}]}),
        Step("GET", "/connectors/s/offsets"),
        Step("DELETE", "/connectors/s/offsets"),
        Step("POST", "/connectors", {"name": "s", "config": SOURCE}),
        Step("PUT", "/connectors/s/resume"),
        Step("GET", "/connectors/s/status", before=is_state("s", "RUNNING", 1)),
        Step("GET", "/connectors/s/tasks"),
        Step("GET", "/connectors/s/tasks/0/status"),
        Step("GET", "/connectors/s/tasks/7/status"),
        Step("POST", "/connectors/s/tasks/7/restart"),
        Step("POST", "/connectors/s/tasks/0/restart"),
        Step("DELETE", "/connectors/s/offsets"),
        Step("PUT", "/connectors/s/pause"),
        Step("GET", "/connectors/s/status", before=is_state("s", "PAUSED", 1)),
        Step("PUT", "/connectors/s/resume"),
        Step("PUT", "/connectors/s/config", {**SOURCE, "topic": "lines2"}, before=is_state("s", "RUNNING", 1)),
        Step("PATCH", "/connectors/s/config", {"batch.size": 100, "topic": "lines"}),
        Step("GET", "/connectors/s/config"),
        Step("PATCH", "/connectors/s/config", {"batch.size": None}),
        Step("GET", "/connectors/s/config"),
        Step("PUT", "/connectors/s/pause"),
        Step("GET", "/connectors/s/status", before=is_state("s", "PAUSED", 1)),
        Step("PUT", "/connectors/s/resume"),
        Step("POST", "/connectors/s/restart?includeTasks=maybe&onlyFailed=true", before=is_state("s", "RUNNING", 1)),
        Step("POST", "/connectors/s/restart"),
        Step("PUT", "/connectors/k/config", sink),
        Step("GET", "/connectors/k/status", before=is_state("k", "RUNNING", 2)),
        Step("GET", "/connectors/k"),
        Step("GET", "/connectors?expand=info&expand=nonsense"),
        Step("GET", "/connectors?expand=status&expand=info"),
        Step(
            "PATCH",
            "/connectors/k/offsets",
            {"offsets": [{"partition": {"kafka_topic": "lines", "kafka_partition": 0}}]},
        ),
        Step("PUT", "/connectors/k/stop"),
        Step("GET", "/connectors/k/status", before=is_state("k", "STOPPED", 0)),
        Step("PATCH", "/connectors/k/offsets", {"offsets": [{"partition": {"kafka_topic": "lines"}, "offset": None}]}),
        Step("PATCH", "/connectors/k/offsets", _sink_offset("x", 3)),
        Step("PATCH", "/connectors/k/offsets", _sink_offset(0, "x")),
        Step("PATCH", "/connectors/k/offsets", _sink_offset("0", "3")),
        Step("GET", "/connectors/k/offsets"),
        Step("DELETE", "/connectors/k/offsets"),
        Step("GET", "/connectors/k/offsets"),
        Step("GET", "/connector-plugins/Nothing/config"),
        Step("GET", f"/connector-plugins/{FILE_SOURCE}/config"),
        Step("GET", "/connector-plugins/FileStreamSink/config"),
        Step("GET", "/connector-plugins/org.apache.kafka.connect.transforms.HoistField$Value/config"),
        Step("GET", "/connector-plugins/org.apache.kafka.connect.json.JsonConverter/config"),
        Step("PUT", "/connector-plugins/FileStreamSource/config/validate", {**SOURCE, "name": "v", **mask}),
        Step("PUT", "/connector-plugins/FileStreamSink/config/validate", {"connector.class": "FileStreamSink"}),
        Step("PUT", "/connector-plugins/FileStreamSink/config/validate", SOURCE),
        Step(
            "PUT",
            "/connector-plugins/FileStreamSink/config/validate",
            {
                **sink,
                "name": "v",
                "topics.regex": "l.*",
                "errors.tolerance": "some",
                "transforms": "a",
                "key.converter": "No",
            },
        ),
        Step("GET", "/admin/loggers/no.such.logger"),
        Step("PUT", "/admin/loggers/a.b", {"level": "nonsense"}),
        Step("PUT", "/admin/loggers/a.b", {}),
        Step("PUT", "/admin/loggers/a.b", {"level": "debug"}),
        Step("GET", "/admin/loggers/a.b"),
        Step("PUT", "/admin/loggers/a.b?scope=cluster", {"level": "TRACE"}),
        Step("POST", "/connectors/s/tasks", []),
        Step("DELETE", "/connectors/s"),
        Step("GET", "/connectors/s", before=is_gone("s")),
        Step("DELETE", "/connectors/k"),
        Step("GET", "/connectors"),
        Step("GET", "/nowhere"),
        Step("DELETE", "/connectors"),
        # What a client sent wrongly: Java's answer is 500.
        Step("POST", "/connectors", b"{"),
        Step("POST", "/connectors", {"name": "s", "config": SOURCE, "surprise": 1}),
        Step("POST", "/connectors", {"name": "s", "config": SOURCE, "initial_state": "FLYING"}),
        Step("POST", "/connectors", {"name": "s"}),
        Step("PUT", "/connector-plugins/FileStreamSink/config/validate", {}),
    ]


def _sink_offset(partition: object, offset: object) -> dict[str, Any]:
    place = {"kafka_topic": "lines", "kafka_partition": partition}
    return {"offsets": [{"partition": place, "offset": {"kafka_offset": offset}}]}


def held_with(url: str, sink_file: str) -> list[tuple[str, Answered]]:
    """Each step, and what was answered."""
    found = []
    for step in steps(sink_file):
        before = None if step.before is None else until(url, *step.before)
        # Between two looks a state may change again: what was waited for is the answer.
        if before is not None and step.before is not None and (step.method, step.path) == ("GET", step.before[0]):
            answer = before
        else:
            answer = ask(url, step.method, step.path, step.body)
        while "rebalance" in str(answer.body):
            answer = ask(url, step.method, step.path, step.body)
        words = "" if step.body is None else f" {str(step.body)[:60]}"
        found.append((f"{step.method} {step.path}{words}", answer))
    return found
