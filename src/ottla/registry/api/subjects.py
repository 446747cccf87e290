"""/subjects: lists, finding by schema, deletes."""

from typing import Any

from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route
from ottla.registry.api import replies
from ottla.registry.api.bodies import SchemaBody
from ottla.registry.api.desk import Desk, all_of, answered
from ottla.registry.machine import lookups
from ottla.registry.machine.commands import DeleteSubject
from ottla.registry.machine.lookups import Which
from ottla.registry.machine.names import WILDCARD


class Subjects:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        listing = {
            "subjectPrefix": "only those that begin so; :*: means in any context",
            "deleted": "true: those that are deleted softly too",
            "deletedOnly": "true: only those",
            "offset": "how many to leave out",
            "limit": "how many at most",
        }
        finding = {
            "normalize": "true: made normal before it is compared",
            "format": "of the answer's schema",
            "deleted": "true: among deleted versions too",
        }
        matching = {
            "key": "a property; may be repeated",
            "value": "its value; as many as keys",
            "format": "of the answer's schema",
            "deleted": "true: among deleted versions too",
        }
        body = SchemaBody | None
        schema = replies.SchemaReply
        return (
            Route("GET", "/subjects", answered(self._list), "All subjects", reply=list[str], query=listing),
            Route(
                "POST",
                "/subjects/{subject}",
                answered(self._find),
                "The version that is this schema",
                body=body,
                reply=schema,
                query=finding,
            ),
            Route(
                "DELETE",
                "/subjects/{subject}",
                answered(self._delete),
                "Deletes all versions",
                reply=list[int],
                query={"permanent": "true: for good, after they were deleted softly"},
            ),
            Route(
                "GET",
                "/subjects/{subject}/metadata",
                answered(self._by_metadata),
                "The latest version with these properties",
                reply=schema,
                query=matching,
            ),
        )

    async def _list(self, call: Call) -> Any:
        which = Which.asked(deleted=call.flag("deleted"), deleted_only=call.flag("deletedOnly"))
        prefix = call.query.get("subjectPrefix", WILDCARD)
        found = lookups.subjects(self._desk.machine.state, prefix, which)
        return self._desk.page(call, list(filter(self._desk.sees(call), found)))

    async def _find(self, call: Call) -> Any:
        body: SchemaBody = required(call)
        subject, sent = self._desk.subject(call), body.sent()
        normalize, deleted = call.flag("normalize"), call.flag("deleted")
        found = await self._desk.look(
            lambda machine: lookups.by_schema(machine, subject, sent, normalize=normalize, deleted=deleted), sent
        )
        return replies.of_found(found, await self._desk.text(found, call.query.get("format")))

    async def _delete(self, call: Call) -> Any:
        command = DeleteSubject(self._desk.subject(call), call.flag("permanent"))
        return await self._desk.write(call, command, lambda versions: versions)

    async def _by_metadata(self, call: Call) -> Any:
        wanted = dict(zip(all_of(call, "key"), all_of(call, "value"), strict=False))
        found = lookups.latest_with(
            self._desk.machine.state, self._desk.subject(call), wanted, deleted=call.flag("deleted")
        )
        return replies.of_version(found, await self._desk.text(found, call.query.get("format")))


def required(call: Call) -> Any:
    if call.body is None:
        raise Problem(422, "The body is null; an object is expected.")
    return call.body
