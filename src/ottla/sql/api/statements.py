"""/ksql: statements, and how they went."""

from typing import Any

from ottla.client.errors import ClientError
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route
from ottla.model.patterns import compiled
from ottla.sql.api.bodies import KsqlRequest, TerminateRequest, cluster_problem, problem_of, variables
from ottla.sql.api.doors import SqlDoor
from ottla.sql.errors import SqlError
from ottla.sql.properties import is_known
from ottla.sql.server.engine import Engine


def _asked_for(number: int | None) -> int | None:
    """Clients send -1 for none; 0 is the first statement of all."""
    return number if number is not None and number >= 0 else None


class Statements:
    def __init__(self, engine: Engine, door: SqlDoor) -> None:
        self._engine = engine
        self._door = door

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("POST", "/ksql", self.run, "Runs statements, one after another.", body=KsqlRequest, reply=list[Any]),
            Route("GET", "/status", self.all, "How the last statements went."),
            Route("GET", "/status/{kind}/{name}/{action}", self.one, "How a statement went."),
            Route(
                "POST",
                "/ksql/terminate",
                self.terminate,
                "Ends all queries and drops all streams and tables.",
                body=TerminateRequest,
            ),
            Route("GET", "/is_valid_property/{name}", self.is_property, "Whether a property may be set."),
        )

    async def run(self, call: Call) -> Any:
        request: KsqlRequest = call.body
        try:
            return await self._engine.execute(
                request.ksql,
                request.streams_properties or {},
                variables(request.session_variables),
                _asked_for(request.command_sequence_number),
                self._door.asker(call.caller, call.headers),
            )
        except SqlError as error:
            raise problem_of(error) from None
        except ClientError as error:
            raise cluster_problem(error) from error

    async def all(self, _: Call) -> Any:
        return {
            "commandStatuses": {
                outcome.command: "ERROR" if outcome.error is not None else "SUCCESS"
                for outcome in self._engine.replaying.outcomes.values()
                if outcome.command
            }
        }

    async def one(self, call: Call) -> Any:
        wanted = f"{call.path['kind']}/{call.path['name']}/{call.path['action']}"
        for outcome in reversed(self._engine.replaying.outcomes.values()):
            if outcome.command == wanted:
                return {
                    "status": "ERROR" if outcome.error is not None else "SUCCESS",
                    "message": outcome.message,
                    "queryId": outcome.query_id,
                }
        raise Problem(404, f"there is no statement {wanted}", 40400)

    async def terminate(self, call: Call) -> Any:
        request: TerminateRequest = call.body
        catalog, asker = self._engine.catalog, self._door.asker(call.caller, call.headers)
        try:
            wanted = [compiled(each) for each in request.delete_topic_list or ()]
        except ValueError as error:
            raise Problem(400, f"deleteTopicList: {error}", 40000) from None
        try:
            if catalog.queries:
                await self._engine.execute("TERMINATE ALL;", {}, {}, asker=asker)
            done: list[Any] = []
            for source in list(catalog.sources.values()):
                is_wanted = not source.is_source and any(each.fullmatch(source.topic) for each in wanted)
                quoted = source.name.replace("`", "``")
                drop = f"DROP {source.kind} `{quoted}`{' DELETE TOPIC' if is_wanted else ''};"
                done += await self._engine.execute(drop, {}, {}, asker=asker)
            return done
        except SqlError as error:
            raise problem_of(error) from None
        except ClientError as error:
            raise cluster_problem(error) from error

    async def is_property(self, call: Call) -> Any:
        name = call.path["name"]
        if not is_known(name):
            raise Problem(400, f"{name} is no property that a statement may set", 40000)
        return True
