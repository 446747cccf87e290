"""/schemas: by id, by GUID, and all of them."""

from typing import Any, Final

from ottla.http.answers import Answer
from ottla.http.call import Call
from ottla.http.routes import Route
from ottla.registry.api import replies
from ottla.registry.api.desk import Desk, all_of, answered, path_number
from ottla.registry.machine import lookups
from ottla.registry.machine.lookups import Which
from ottla.registry.machine.names import context_of
from ottla.registry.machine.versions import SchemaVersion

_ID: Final = "/schemas/ids/{id}"
_GUID: Final = "/schemas/guids/{guid}"
_ASSOCIATED: Final = ("resourceType", "associationType", "lifecycle")
_TYPES: Final = ("JSON", "PROTOBUF", "AVRO")
"""In Confluent's order."""


class Schemas:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        paging = {"offset": "how many to leave out", "limit": "how many at most"}
        hint = {"subject": "where to look first; names a context too"}
        shown = {**hint, "format": "of the schema: resolved, serialized, ignore_extensions"}
        by_id = {
            **shown,
            "referenceFormat": "qualified: references with their context",
            "findTags": "tags to be told of",
            "fetchMaxId": "true: the highest id of the context too",
        }
        uses = {**hint, "deleted": "true: those that are deleted softly too", **paging}
        listing = {
            "subjectPrefix": "only subjects that begin so; :*: means in any context",
            "aliases": "true: the aliases of each subject too",
            "deleted": "true: versions that are deleted softly too",
            "latestOnly": "true: of each subject the latest",
            "ruleType": "only versions with a rule of this type",
            **{name: "only versions of subjects with such an association: there are none" for name in _ASSOCIATED},
            **paging,
        }
        schema: Any = replies.SchemaReply
        schemas = list[replies.SchemaReply]
        pairs = list[replies.SubjectVersion]
        ids = list[replies.ContextId]
        return (
            Route("GET", "/schemas", answered(self._list), "All schemas", reply=schemas, query=listing),
            Route("GET", "/schemas/types", answered(self._types), "Languages of schemas", reply=list[str]),
            Route("GET", _ID, answered(self._by_id), "A schema by its id", reply=schema, query=by_id),
            Route("GET", f"{_ID}/schema", answered(self._text), "Its text alone", reply=bytes, query=shown),
            Route("GET", f"{_ID}/subjects", answered(self._subjects), "Who uses it", reply=list[str], query=uses),
            Route("GET", f"{_ID}/versions", answered(self._versions), "Where it is", reply=pairs, query=uses),
            Route(
                "GET",
                _GUID,
                answered(self._by_guid),
                "A schema by its GUID",
                reply=schema,
                query={"format": "of the schema"},
            ),
            Route("GET", f"{_GUID}/ids", answered(self._ids), "Its ids, by context", reply=ids),
        )

    async def _list(self, call: Call) -> Any:
        if any(call.query.get(name) for name in _ASSOCIATED):
            return self._desk.page(call, [], family="schema")
        state = self._desk.machine.state
        prefix = call.query.get("subjectPrefix", "")
        which = Which.asked(deleted=call.flag("deleted"))
        latest_only = call.flag("latestOnly")
        found = lookups.schemas(state, prefix, which, latest_only=latest_only)
        types = [each.upper() for each in all_of(call, "ruleType")]
        sees = self._desk.sees(call)
        versions = [each for each in found if sees(each.subject) and (not types or _has_rule(each, types))]
        if not call.flag("aliases"):
            return [replies.of_version(each) for each in self._desk.page(call, versions, family="schema")]
        aliases = lookups.aliases(state)
        shown = {each.subject for each in versions}
        for subject, names in aliases.items():
            if subject not in shown and sees(subject) and any(lookups.begins(name, prefix) for name in names):
                versions += lookups.versions_of(state, subject, which, latest_only=latest_only)
        versions.sort(key=lambda each: (each.subject, each.version))
        answers = [replies.of_version(each) for each in self._desk.page(call, versions, family="schema")]
        for answer in answers:
            answer.aliases = aliases.get(answer.subject or "")
        return answers

    async def _types(self, call: Call) -> Any:
        known = self._desk.machine.parser.types
        return [each for each in _TYPES if each in known] + [each for each in known if each not in _TYPES]

    def _found(self, call: Call) -> SchemaVersion:
        state, hint = self._desk.machine.state, self._desk.hinted(call)
        return lookups.by_id(state, path_number(call, "id"), hint, self._desk.sees(call))

    async def _by_id(self, call: Call) -> Any:
        found = self._found(call)
        text = await self._desk.text(found, call.query.get("format"))
        reply = replies.of_version(found, text, qualified=call.query.get("referenceFormat") == "qualified")
        reply.id = None
        wanted = all_of(call, "findTags")
        if wanted:
            reply.schema_tags = await self._desk.tags(found, wanted)
        if call.flag("fetchMaxId"):
            reply.max_id = self._desk.machine.state.ids.highest(context_of(found.subject))
        return reply

    async def _text(self, call: Call) -> Any:
        found = self._found(call)
        text = await self._desk.text(found, call.query.get("format"))
        return Answer((found.text if text is None else text).encode())

    def _uses(self, call: Call) -> list[SchemaVersion]:
        state, hint, sees = self._desk.machine.state, self._desk.hinted(call), self._desk.sees(call)
        return lookups.places_of_id(state, path_number(call, "id"), hint, sees, deleted=call.flag("deleted"))

    async def _subjects(self, call: Call) -> Any:
        return self._desk.page(call, list(dict.fromkeys(each.subject for each in self._uses(call))))

    async def _versions(self, call: Call) -> Any:
        found = [replies.SubjectVersion(each.subject, each.version) for each in self._uses(call)]
        return self._desk.page(call, found)

    async def _by_guid(self, call: Call) -> Any:
        found = lookups.by_guid(self._desk.machine.state, call.path["guid"], self._desk.sees(call))
        reply = replies.of_version(found, await self._desk.text(found, call.query.get("format")))
        reply.id = reply.subject = reply.version = None
        return reply

    async def _ids(self, call: Call) -> Any:
        found = lookups.ids_of_guid(self._desk.machine.state, call.path["guid"], self._desk.sees(call))
        return [replies.ContextId(context, id) for context, id in found]


def _has_rule(version: SchemaVersion, types: list[str]) -> bool:
    rules = version.rule_set
    if rules is None:
        return False
    every = (*(rules.migration_rules or ()), *(rules.domain_rules or ()), *(rules.encoding_rules or ()))
    return any((rule.type or "").upper() in types for rule in every)
