"""Any few requests, to any route, with bodies that nearly fit: no answer is a failure of ours, and each error says what
it is. `make matrix` asks a registry over a cluster what schemathesis makes of the OpenAPI document, too, which takes
forty seconds for one example of each operation."""

import json
from typing import Any
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.registry.api.needs import FREE, NEEDS
from ottla.registry.languages import LANGUAGES
from ottla.registry.machine.machine import Machine
from tests.support.examples import examples
from tests.support.local_registry import LocalRegistry, run

ROUTES = sorted({*NEEDS, *FREE})
SUBJECTS = ("s", "t", ":.eu:s", ":.eu:", ":.:s", ":*:", ":.__GLOBAL:", "", "a/b", "\0", "x" * 300, "__EMPTY")
PLACES = {
    "subject": SUBJECTS,
    "version": ("1", "2", "latest", "-1", "0", "x", "2147483648"),
    "id": ("1", "2", "0", "-1", "x", "99999999999"),
    "guid": ("x", "00000000-0000-0000-0000-000000000000"),
    "context": (".", ".eu", ":.eu:", ".nope", "", " "),
}
ASKED = [
    "deleted", "permanent", "normalize", "force", "verbose", "format", "subject", "subjectPrefix", "offset", "limit",
    "latestOnly", "deletedOnly", "deletedAsNegative", "defaultToGlobal", "recursive", "fetchMaxId", "findTags", "key",
    "value", "aliases", "ruleType", "referenceFormat", "contextPrefix",
]  # fmt: skip
QUERIES = st.dictionaries(
    st.sampled_from(ASKED),
    st.sampled_from(["true", "False", "", "1", "-1", "x", "*", ":*:", ":.eu:", "serialized", "resolved", "qualified"]),
    max_size=3,
)
SCHEMAS = (
    ("AVRO", '"int"'),
    ("AVRO", '{"type": "record", "name": "R", "fields": []}'),
    ("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 0}]}'),
    ("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Q"}]}'),
    ("JSON", "true"),
    ("JSON", '{"type": "object", "properties": {"a": {"type": "string"}}}'),
    ("JSON", '{"$ref": "other.json"}'),
    ("PROTOBUF", 'syntax = "proto3"; message R { int32 a = 1; }'),
    ("PROTOBUF", 'import "other.proto"; message R { optional int32 a = 1; }'),
    ("XML", "<a/>"),
    ("AVRO", ""),
)
NUMBERS = st.sampled_from([0, 1, 2, 3, -1, 7, 1 << 31])
WORDS = st.sampled_from(["a", "", "R", "R.a", "confluent:version", "1", "é\0"])
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.dictionaries(WORDS, st.lists(WORDS, max_size=2), max_size=2),
        "properties": st.dictionaries(WORDS, WORDS, max_size=2),
        "sensitive": st.lists(WORDS, max_size=2),
    },
)
RULES = st.lists(
    st.fixed_dictionaries(
        {"name": WORDS, "type": st.sampled_from(["CEL", ""])},
        optional={"mode": st.sampled_from(["UPGRADE", "WRITE", "X"]), "kind": st.sampled_from(["CONDITION", "X"])},
    ),
    max_size=2,
)
RULE_SET = st.fixed_dictionaries({}, optional={"domainRules": RULES, "migrationRules": RULES})
REFERENCES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["Q", "other.json", "other.proto"]), "subject": st.sampled_from(SUBJECTS)}
        | {"version": NUMBERS}
    ),
    max_size=2,
)
TAGS = st.lists(
    st.fixed_dictionaries(
        {"schemaEntity": st.fixed_dictionaries({"entityPath": WORDS}), "tags": st.lists(WORDS, max_size=2)}
    ),
    max_size=1,
)
FITTING = st.fixed_dictionaries(
    {},
    optional={
        "references": REFERENCES,
        "metadata": METADATA,
        "ruleSet": RULE_SET,
        "id": NUMBERS,
        "version": NUMBERS,
        "newVersion": NUMBERS,
        "schemaTagsToAdd": TAGS,
        "schemaTagsToRemove": TAGS,
        "tagsToAdd": TAGS,
        "propagateSchemaTags": st.booleans(),
        "rulesToMerge": RULE_SET,
        "rulesToRemove": st.lists(WORDS, max_size=1),
        "mode": st.sampled_from(["READONLY", "IMPORT", "READWRITE", "FORWARD", "x"]),
        "compatibility": st.sampled_from(["NONE", "FULL_TRANSITIVE", "FORWARD", "x"]),
        "compatibilityPolicy": st.sampled_from(["LENIENT", "x"]),
        "compatibilityGroup": WORDS,
        "alias": st.sampled_from(SUBJECTS),
        "normalize": st.booleans(),
        "defaultMetadata": METADATA,
        "overrideRuleSet": RULE_SET,
    },
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes]:
    method, path = draw(st.sampled_from(ROUTES))
    for name, values in PLACES.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(draw(st.sampled_from(values)), safe=""))
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in draw(QUERIES).items())
    if method in ("GET", "DELETE"):
        return method, f"{path}?{query}", b""
    body: Any = draw(FITTING)
    if draw(st.booleans()):
        body["schemaType"], body["schema"] = draw(st.sampled_from(SCHEMAS))
    if draw(st.integers(0, 4)) == 0 and body:
        body[draw(st.sampled_from(sorted(body)))] = draw(ANYTHING)
    return method, f"{path}?{query}", json.dumps(body).encode()


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(requests(), min_size=3, max_size=12))
def test_no_requests_make_it_fail(asked: list[tuple[str, str, bytes]]) -> None:
    async def work(registry: LocalRegistry) -> None:
        for method, target, body in asked:
            kind = {"content_type": "application/json"} if body else {}
            status, told = await registry.ask(method, target, body, **kind)
            assert status < 500, (method, target, body, told)
            if status >= 400:
                assert isinstance(told["error_code"], int) and told["message"], (method, target, told)

    run(work, Machine(LANGUAGES))
