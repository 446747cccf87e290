"""What there is: connectors, their states, traces and offsets, plug-ins, whether a config is any good."""

import json
import sys
from typing import Any

from ottla.cli.connect.remote import Remote, connector_file, connector_path
from ottla.cli.failures import Failure
from ottla.cli.output import Table, show
from ottla.cli.parser import Arguments
from ottla.cli.reach import output


def list_connectors(arguments: Arguments) -> int:
    remote = Remote.of(arguments)
    names: list[str] = remote.ask("GET", "/connectors")
    found: dict[str, Any] = remote.ask("GET", "/connectors", expand="status")
    table = Table("NAME", "TYPE", "STATE", "TASKS", "WORKER")
    for name in sorted(names):
        status = found.get(name, {}).get("status")
        if status is None:
            table.add(name, None, None, None, None)
            continue
        states = [task["state"] for task in status["tasks"]]
        running = f"{states.count('RUNNING')}/{len(states)} running"
        table.add(name, status["type"], status["connector"]["state"], running, status["connector"]["worker_id"])
    show(table, output(arguments))
    return 0


def status(arguments: Arguments) -> int:
    found = Remote.of(arguments).ask("GET", connector_path(arguments.text("name"), "/status"))
    if output(arguments) == "json":
        print(json.dumps(found, indent=2))
        return 0
    table = Table("PART", "STATE", "WORKER", "VERSION")
    table.add(
        "connector", found["connector"]["state"], found["connector"]["worker_id"], found["connector"].get("version")
    )
    for task in found["tasks"]:
        table.add(f"task {task['id']}", task["state"], task["worker_id"], task.get("version"))
    show(table, "table")
    for trace in _traces(found):
        print(f"\n{trace.rstrip()}")
    return 0


def logs(arguments: Arguments) -> int:
    """Why it failed, from the status; nothing to tell is success."""
    found = Remote.of(arguments).ask("GET", connector_path(arguments.text("name"), "/status"))
    for trace in _traces(found):
        print(trace.rstrip())
    return 0


def _traces(found: dict[str, Any]) -> list[str]:
    every = [found["connector"].get("trace"), *(task.get("trace") for task in found["tasks"])]
    return list(dict.fromkeys(trace for trace in every if trace))


def offsets(arguments: Arguments) -> int:
    remote, path = Remote.of(arguments), connector_path(arguments.text("name"), "/offsets")
    if arguments.flag("reset"):
        print(remote.ask("DELETE", path)["message"])
        return 0
    if arguments.has("set"):
        _, body = connector_file(arguments.text("set"))
        print(remote.ask("PATCH", path, body)["message"])
        return 0
    found = remote.ask("GET", path)["offsets"]
    if output(arguments) == "json":
        print(json.dumps({"offsets": found}, indent=2))
        return 0
    table = Table("PARTITION", "OFFSET")
    for each in found:
        table.add(json.dumps(each["partition"]), json.dumps(each["offset"]))
    show(table, "table")
    return 0


def validate(arguments: Arguments) -> int:
    from ottla.connect.definitions import misspelt  # noqa: PLC0415  for this word alone

    name, config = connector_file(arguments.text("file"))
    class_name = str(config.get("connector.class", ""))
    if not class_name:
        raise Failure(f"{arguments.text('file')} names no connector.class")
    body = {**config, **({"name": name} if name else {})}
    found = Remote.of(arguments).ask("PUT", f"/connector-plugins/{class_name.rpartition('.')[2]}/config/validate", body)
    if output(arguments) == "json":
        print(json.dumps(found, indent=2))
    else:
        for each in found["configs"]:
            for error in each["value"]["errors"]:
                print(f"{each['value']['name']}: {error}", file=sys.stderr)
        for key, meant in misspelt(body, (each["value"]["name"] for each in found["configs"])).items():
            print(f"{key}: is no key of {class_name}; did you mean {meant}?", file=sys.stderr)
    if found["error_count"]:
        return 1
    if output(arguments) != "json":
        print(f"{class_name}: nothing is wrong with it")
    return 0


def plugins(arguments: Arguments) -> int:
    remote = Remote.of(arguments)
    name = arguments.optional("name")
    if name is None:
        table = Table("CLASS", "TYPE", "VERSION")
        for row in remote.ask("GET", "/connector-plugins", connectorsOnly=not arguments.flag("all")):
            table.add(row["class"], row["type"], row.get("version"))
    else:
        table = Table("KEY", "TYPE", "DEFAULT", "REQUIRED", "MEANING")
        for key in remote.ask("GET", f"/connector-plugins/{name}/config"):
            required = "yes" if key["required"] else "no"
            table.add(key["name"], key["type"].lower(), key["default_value"], required, key["documentation"])
    show(table, output(arguments))
    return 0
