"""`ottla sql run`: a file of statements as one application on Spark."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from ottla.cli.failures import Failure
from ottla.cli.output import note
from ottla.cli.parser import Arguments
from ottla.cli.streams.app import app_of
from ottla.cli.streams.run import run as run_application


def run(arguments: Arguments) -> int:
    """Makes the topics that its queries write, then runs it as any application."""
    from ottla.client.errors import ClientError
    from ottla.client.security import SecurityRefused
    from ottla.sql.application import load, make_topics
    from ottla.sql.errors import SqlError

    app, _ = app_of(arguments)
    try:
        with app.config.reach("admin").cluster(client_id="ottla-cli") as server:
            for topic in make_topics(load(arguments.text("file")), server):
                note(f"topic {topic} made")
    except (SqlError, ClientError, SecurityRefused) as error:
        raise Failure(str(error)) from error
    return run_application(arguments)
