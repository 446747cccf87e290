"""`ottla connect redrive`: dead letters once more."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import json
from typing import TYPE_CHECKING

from ottla.cli.failures import Failure
from ottla.cli.output import Table, counted, show
from ottla.cli.parser import Arguments
from ottla.cli.reach import cluster, output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.blocking.cluster import Cluster
    from ottla.connect.redrive import DeadLetter, Letters


def redrive(arguments: Arguments) -> int:
    from ottla.connect.redrive import Letters, RedriveRefused, condition, require_sendable, to_topics

    topic = arguments.text("dlq")
    try:
        wanted = [condition(text) for text in arguments.texts("filter")]
        with cluster(arguments) as client:
            letters = Letters(client, topic)
            if arguments.flag("dry_run"):
                return _shown(arguments, letters.read(wanted))
            if arguments.has("connector"):
                return _to_sink(arguments, client, letters, list(letters.read(wanted)))
            target = arguments.optional("to")
            require_sendable(letters.read(wanted), target)
            counts = to_topics(client, letters, letters.read(wanted), target)
    except RedriveRefused as error:
        raise Failure(str(error)) from error
    if output(arguments) == "json":
        print(json.dumps({"sent": dict(counts)}))
        return 0
    for target, number in counts.items():
        print(f"{counted(number, 'letter')} sent to {target}")
    if not counts:
        print(f"no letter of {topic} is left that --filter asks for")
    return 0


def _to_sink(arguments: Arguments, client: "Cluster", letters: "Letters", found: "list[DeadLetter]") -> int:
    from ottla.cli.connect.run import spec_of
    from ottla.connect.redrive_to_sink import to_sink

    spec = spec_of(arguments, arguments.text("connector"))
    taken = to_sink(client, letters, found, spec)
    if output(arguments) == "json":
        refused = [{"record": each.where, "reason": each.failure.message} for each in taken.refused]
        print(json.dumps({"written": taken.written, "refused": refused}))
        return 1 if refused else 0
    print(f"{counted(taken.written, 'letter')} written by {spec.name}")
    for each in taken.refused:
        print(f"refused once more, and kept: {each.where}: {each.failure.message}")
    return 1 if taken.refused else 0


def _shown(arguments: Arguments, found: "Iterable[DeadLetter]") -> int:
    table = Table("LETTER", "FROM", "STAGE", "REASON")
    for letter in found:
        said = letter.said
        origin = f"{said.get('topic', '?')}-{said.get('partition', '?')}:{said.get('offset', '?')}"
        reason = said.get("exception.message", "")
        table.add(f"{letter.place.partition}:{letter.record.offset}", origin, said.get("stage"), reason)
    show(table, output(arguments))
    return 0
