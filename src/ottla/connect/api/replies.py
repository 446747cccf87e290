"""How connectors, statuses and definitions look as JSON: as Java's entities do."""

from typing import Any

from ottla.connect.configs import Connector
from ottla.connect.definitions import ConfigKey, ConfigValue, render
from ottla.connect.statuses import Status
from ottla.connect.validation import Verdict


def info(connector: Connector, kind: str, *, tasks: bool = True) -> dict[str, Any]:
    numbers = range(connector.task_count if tasks else 0)
    return {
        "name": connector.name,
        "config": dict(connector.config),
        "tasks": [{"connector": connector.name, "task": number} for number in numbers],
        "type": kind,
    }


def state(status: Status) -> dict[str, Any]:
    found: dict[str, Any] = {"state": status.state.value, "worker_id": status.worker_id}
    if status.trace:
        found["trace"] = status.trace
    if status.version:
        found["version"] = status.version
    return found


def status(name: str, connector: Status, tasks: dict[int, Status], kind: str) -> dict[str, Any]:
    of_connector = state(connector)
    if connector.restarts or connector.next_restart_ms is not None:
        of_connector["restarts"] = connector.restarts
        of_connector["next_restart_ms"] = connector.next_restart_ms
    return {
        "name": name,
        "connector": of_connector,
        "tasks": [task_status(number, each) for number, each in sorted(tasks.items())],
        "type": kind,
    }


def task_status(number: int, found: Status) -> dict[str, Any]:
    return {"id": number, **state(found)}


def definition(key: ConfigKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": key.type.name,
        "required": key.required,
        "default_value": key.default_text,
        "importance": key.importance.name,
        "documentation": key.documentation,
        "group": key.group,
        "width": key.width.value,
        "display_name": key.display_name,
        "dependents": list(key.dependents),
        "order_in_group": key.order,
    }


def value(found: ConfigValue) -> dict[str, Any]:
    return {
        "name": found.name,
        "value": render(found.value),
        "recommended_values": [render(each) for each in found.recommended],
        "errors": list(found.errors),
        "visible": found.visible,
    }


def verdict(found: Verdict) -> dict[str, Any]:
    configs = [
        {"definition": None if key is None else definition(key), "value": value(each)} for key, each in found.configs
    ]
    return {
        "name": found.connector_class,
        "error_count": found.error_count,
        "groups": list(found.groups),
        "configs": configs,
    }
