"""`ottla streams status` and `top`: how applications do."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import sys
import time
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.output import Table, note, show, show_json
from ottla.cli.parser import Arguments
from ottla.cli.reach import client_settings, cluster, output
from ottla.cli.streams.app import app_of, state_dir_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.streams.run.instances import Listed
    from ottla.streams.run.state_directory import StateDirectory


OK: Final = 0


def status(arguments: Arguments) -> int:
    from ottla.streams.run.state_directory import StateDirectory, applications

    app = app_of(arguments)[0] if arguments.has("file") else None
    root = state_dir_of(arguments, app)
    chosen = app.application_id if app is not None else arguments.optional("application_id")
    if chosen is None:
        return _all_of_them(arguments, root, applications(root))
    return _one_of_them(arguments, StateDirectory(root, chosen))


def _all_of_them(arguments: Arguments, root: str, local: list[str]) -> int:
    from ottla.streams.run.config import MARKER_SUFFIX
    from ottla.streams.run.instances import instances_of
    from ottla.streams.run.state_directory import StateDirectory

    table = Table("APPLICATION", "PROCESS", "INPUTS", "LAG", "QUERIES", "INSTANCES")
    with cluster(arguments) as server:
        names = [topic.name or "" for topic in server.metadata().topics]
        marked = [name.removesuffix(MARKER_SUFFIX) for name in names if name.endswith(MARKER_SUFFIX)]
        for application_id in sorted({*local, *marked}):
            owner = StateDirectory(root, application_id).owner()
            rows = _lag(server, application_id)
            process = "-" if owner is None else str(owner.get("pid", "?"))
            url = None if owner is None else owner.get("queries")
            lag = sum(row[4] or 0 for row in rows)
            there = _instances(instances_of(server, application_id))
            table.add(application_id, process, len({row[0] for row in rows}), lag, url, there)
    show(table, output(arguments))
    if not table.rows:
        note(f"no application has a state directory in {root} or a topic at these brokers")
    return OK


def _instances(found: "Sequence[Listed]") -> str | None:
    return "; ".join(f"{each.about}{'' if each.active else ', standby'}" for each in found) or None


def _one_of_them(arguments: Arguments, directory: "StateDirectory") -> int:
    from ottla.streams.run.instances import instances_of

    table = Table("TOPIC", "PARTITION", "COMMITTED", "END", "LAG")
    with cluster(arguments) as server:
        rows = _lag(server, directory.application_id)
        there = instances_of(server, directory.application_id)
    for row in rows:
        table.add(*row)
    owner = directory.owner() if directory.is_local else None
    answer = _asked(owner, client_settings(arguments)) if owner is not None else None
    if output(arguments) == "json":
        document = {
            "application_id": directory.application_id,
            "process": None if owner is None else owner.get("pid"),
            "state_directory": directory.path,
            "instances": [{**each.about._asdict(), "active": each.active} for each in there],
            "partitions": table.records(),
            "status": answer,
        }
        show_json(document)
        return OK
    if owner is None:
        note(f"{directory.application_id}: does not run with state in {directory.path}")
    else:
        state = "" if answer is None else f", {answer.get('state', '')}"
        note(f"{directory.application_id}: runs as process {owner.get('pid', '?')}{state}, state in {directory.path}")
    for each in there:
        note(f"  {'active' if each.active else 'stands by'}: {each.about}")
    show(table, "table")
    return OK


def _asked(owner: "Mapping[str, Any]", settings: "Mapping[str, str]") -> Any:
    """What the running application tells, when it serves queries."""
    import json

    from ottla.cli.pages import page

    url = owner.get("queries")
    if not url:
        return None
    try:
        return json.loads(page(f"{url}/status", settings, 5))
    except (OSError, ValueError) as error:
        note(f"the application at {url} does not tell how it is: {error}")
        return None


def _lag(server: Any, application_id: str) -> "list[tuple[str, int, int | None, int | None, int | None]]":
    from ottla.client import groups
    from ottla.client.errors import KafkaError
    from ottla.client.offsets import LATEST, list_offsets

    committed = groups.committed(server, application_id)
    places = sorted(committed)
    ends = list_offsets(server, dict.fromkeys(places, LATEST)) if places else {}
    rows: list[tuple[str, int, int | None, int | None, int | None]] = []
    for place in places:
        outcome = ends[place]
        end = None if isinstance(outcome, KafkaError) else outcome.offset
        offset = committed[place].offset
        rows.append((*place, offset, end, None if end is None else max(end - offset, 0)))
    return rows


def top(arguments: Arguments) -> int:
    """Until Ctrl-C, or so many times as --times says."""
    from ottla.cli.streams.progress import Rates

    root = state_dir_of(arguments, None)
    rates: dict[str, Rates] = {}
    left = arguments.optional_number("times")
    watched = sys.stdout.isatty()
    while left is None or left > 0:
        table = doing(root, rates)
        if watched:
            sys.stdout.write("\x1b[H\x1b[2J")
        show(table, output(arguments))
        sys.stdout.flush()
        left = None if left is None else left - 1
        if left != 0:
            time.sleep(arguments.optional_number("interval") or 2)
    return OK


def doing(root: str, rates: "dict[str, Any]") -> Table:
    """What the applications with a folder in `root` tell of themselves, those that run first."""
    from ottla.cli.output import size_text
    from ottla.cli.streams.progress import Rates, total
    from ottla.streams.run.state_directory import StateDirectory, applications

    table = Table("APPLICATION", "PROCESS", "STATE", "BATCHES", "READ/S", "WRITTEN/S", "LAG", "STATE SIZE", "WAITS FOR")
    for name in applications(root):
        directory = StateDirectory(root, name)
        owner, told = directory.owner(), directory.status()
        if owner is None or told is None:
            table.add(name, None if owner is None else owner.get("pid"), *[None] * 7)
            continue
        read, written = rates.setdefault(name, Rates()).of(told, time.monotonic())
        size = size_text(total(told, "state-bytes"))
        numbers = (total(told, "batches"), round(read), round(written), total(told, "lag"))
        table.add(name, owner.get("pid"), told.get("state"), *numbers, size, told.get("waits-for"))
    table.rows.sort(key=lambda row: row[1] is None)
    return table
