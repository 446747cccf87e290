"""`ottla connect redrive`: dead letters once more."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import json

from ottla.cli.failures import Failure
from ottla.cli.output import Table, counted, show
from ottla.cli.parser import Arguments
from ottla.cli.reach import cluster, output


def redrive(arguments: Arguments) -> int:
    from ottla.connect.redrive import Letters, RedriveRefused, condition, to_topics

    topic = arguments.text("dlq")
    try:
        wanted = [condition(text) for text in arguments.texts("filter")]
        with cluster(arguments) as client:
            letters = Letters(client, topic)
            found = list(letters.read(wanted))
            if arguments.flag("dry_run"):
                return _shown(arguments, found)
            counts = to_topics(client, letters, found, arguments.optional("to"))
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


def _shown(arguments: Arguments, found: list) -> int:  # type: ignore[type-arg]
    table = Table("LETTER", "FROM", "STAGE", "REASON")
    for letter in found:
        said = letter.said
        origin = f"{said.get('topic', '?')}-{said.get('partition', '?')}:{said.get('offset', '?')}"
        reason = said.get("exception.message", "")
        table.add(f"{letter.place.partition}:{letter.record.offset}", origin, said.get("stage"), reason)
    show(table, output(arguments))
    return 0
