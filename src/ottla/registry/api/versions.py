"""/subjects/{subject}/versions: registering, reading, deleting; tags; who refers to a version."""

from typing import Any, Final

from ottla.http.answers import Answer
from ottla.http.call import Call
from ottla.http.routes import Route
from ottla.registry.api import replies
from ottla.registry.api.bodies import SchemaBody, TagBody
from ottla.registry.api.desk import Desk, all_of, answered
from ottla.registry.api.subjects import required
from ottla.registry.machine import lookups
from ottla.registry.machine.commands import DeleteVersion, Sent
from ottla.registry.machine.lookups import Which
from ottla.registry.machine.versions import SchemaVersion, number_of

_ALL: Final = "/subjects/{subject}/versions"
_ONE: Final = "/subjects/{subject}/versions/{version}"


class Versions:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        paging = {"offset": "how many to leave out", "limit": "how many at most"}
        deleted = {"deleted": "true: a version that is deleted softly too"}
        shown = {"format": "of the schema: resolved, serialized, ignore_extensions", **deleted}
        listed = {
            **deleted,
            "deletedOnly": "true: only those",
            "deletedAsNegative": "true: those too, with a minus sign",
            **paging,
        }
        registered = {
            "normalize": "true: made normal first",
            "format": "of the answer's schema",
            "force": "true: compatible or not",
        }
        one = {**shown, "referenceFormat": "qualified: references with their context", "findTags": "tags to be told of"}
        schema = replies.SchemaReply
        return (
            Route("GET", _ALL, answered(self._list), "All versions", reply=list[int], query=listed),
            Route(
                "POST",
                _ALL,
                answered(self._register),
                "Registers a schema",
                body=SchemaBody | None,
                reply=schema,
                query=registered,
            ),
            Route("GET", _ONE, answered(self._one), "One version", reply=schema, query=one),
            Route(
                "DELETE",
                _ONE,
                answered(self._delete),
                "Deletes a version",
                reply=int,
                query={"permanent": "true: for good, after it was deleted softly"},
            ),
            Route("GET", f"{_ONE}/schema", answered(self._text), "Its schema alone", reply=bytes, query=shown),
            Route(
                "GET",
                f"{_ONE}/referencedby",
                answered(self._referrers),
                "Ids of the schemas that refer to it",
                reply=list[int],
                query={**deleted, **paging},
            ),
            Route(
                "POST",
                f"{_ONE}/tags",
                answered(self._tags),
                "A new version with other tags, metadata or rules",
                body=TagBody | None,
                reply=schema,
            ),
        )

    async def _list(self, call: Call) -> Any:
        found = lookups.version_numbers(
            self._desk.machine.state,
            self._desk.subject(call),
            Which.asked(deleted=call.flag("deleted"), deleted_only=call.flag("deletedOnly")),
            negative=call.flag("deletedAsNegative"),
        )
        return self._desk.page(call, found)

    async def _register(self, call: Call) -> Any:
        body: SchemaBody = required(call)
        command = body.register(self._desk.subject(call), normalize=call.flag("normalize"), force=call.flag("force"))
        # Most of what serializers register is known, and need not trouble who leads.
        answer = await self._desk.look(lambda machine: machine.known(command), command.schema)
        if answer is None:
            answer = await self._desk.write(call, command, lambda version: version)
        if isinstance(answer, Answer):
            return answer
        return replies.of_registered(answer, await self._desk.text(answer, _form(call, command.schema)))

    def _found(self, call: Call, *, deleted: bool) -> SchemaVersion:
        number = number_of(call.path["version"])
        return lookups.version(self._desk.machine.state, self._desk.subject(call), number, deleted=deleted)

    async def _one(self, call: Call) -> Any:
        found = self._found(call, deleted=call.flag("deleted"))
        text = await self._desk.text(found, call.query.get("format"))
        reply = replies.of_version(found, text, qualified=call.query.get("referenceFormat") == "qualified")
        wanted = all_of(call, "findTags")
        if wanted:
            reply.schema_tags = await self._desk.tags(found, wanted)
        return reply

    async def _text(self, call: Call) -> Any:
        found = self._found(call, deleted=call.flag("deleted"))
        text = await self._desk.text(found, call.query.get("format"))
        return Answer((found.text if text is None else text).encode())

    async def _referrers(self, call: Call) -> Any:
        number = number_of(call.path["version"])
        state, subject = self._desk.machine.state, self._desk.subject(call)
        found = lookups.referenced_by(state, subject, number, deleted=call.flag("deleted"))
        return self._desk.page(call, found)

    async def _delete(self, call: Call) -> Any:
        number = number_of(call.path["version"])
        command = DeleteVersion(self._desk.subject(call), number, call.flag("permanent"))
        return await self._desk.write(call, command, lambda deleted: deleted)

    async def _tags(self, call: Call) -> Any:
        body: TagBody = required(call)
        command = body.modify(self._desk.subject(call), number_of(call.path["version"]))
        return await self._desk.write(call, command, replies.of_registered)


def _form(call: Call, sent: Sent) -> str | None:
    """A descriptor is answered with one: confluent-kafka remembers the answer as what a later `format=serialized` would
    give, and a Protobuf deserializer beside its serializer fails on the text."""
    is_text = sent.schema_type != "PROTOBUF" or any(each in sent.text for each in "{;")
    return call.query.get("format") or (None if is_text else "serialized")
