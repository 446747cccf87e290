"""The REST API: paths, media types, codes, pages. What schemas mean is told by the rules of the core."""

import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from ottla.registry.languages import LANGUAGES
from ottla.registry.machine.machine import Machine
from ottla.registry.runner import LARGE_TEXT, QUICK_STEPS
from ottla.registry.schemas.base import DEFAULT_STEPS
from tests.support.local_registry import BODY_BYTES, LocalRegistry, run
from tests.support.toy_language import toy

A, B = toy("a"), toy("a", "b?")
V1 = "application/vnd.schemaregistry.v1+json"


async def filled(registry: LocalRegistry) -> None:
    for subject, text in (("s", A), ("s", B), ("t%2Fu", A), ("%3A.eu%3As", B)):
        status, _ = await registry.ask("POST", f"/subjects/{subject}/versions", {"schema": text})
        assert status == 200


def test_registering_and_reading_have_confluents_members() -> None:
    async def work(registry: LocalRegistry) -> None:
        made = await registry.ask(
            "POST", "/subjects/s/versions", {"schema": A, "metadata": {"properties": {"o": "me"}}}
        )
        guid = made[1]["guid"]
        assert made == (
            200,
            {
                "id": 1,
                "version": 1,
                "guid": guid,
                "schemaType": "AVRO",
                "metadata": {"properties": {"o": "me"}},
                "schema": A,
            },
        )
        shown = {"subject": "s", **made[1], "ts": 1_700_000_000_000, "deleted": False}
        assert await registry.ask("GET", "/subjects/s/versions/1") == (200, shown)
        assert await registry.ask("GET", "/subjects/s/versions/latest") == (200, shown)
        by_id = {name: value for name, value in shown.items() if name != "id"}
        assert await registry.ask("GET", "/schemas/ids/1") == (200, by_id)
        assert await registry.ask("GET", "/schemas/ids/1?fetchMaxId=true") == (200, {**by_id, "maxId": 1})
        assert await registry.ask("POST", "/subjects/s", {"schema": A}) == (200, {"subject": "s", **made[1]})
        by_guid = {name: value for name, value in by_id.items() if name not in ("subject", "version")}
        assert await registry.ask("GET", f"/schemas/guids/{guid}") == (200, by_guid)
        assert await registry.ask("GET", f"/schemas/guids/{guid}/ids") == (200, [{"context": ".", "id": 1}])
        assert await registry.ask("GET", "/schemas/ids/1/subjects") == (200, ["s"])
        assert await registry.ask("GET", "/schemas/ids/1/versions") == (200, [{"subject": "s", "version": 1}])

    run(work)


def test_the_text_alone_is_given_as_it_is() -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        for path in ("/subjects/s/versions/1/schema", "/schemas/ids/1/schema"):
            status, headers, content = await registry.exchange("GET", path)
            assert (status, headers["content-type"], content) == (200, V1, A.encode())
        assert await registry.ask("GET", "/schemas/ids/9/schema") == (
            404,
            {"error_code": 40403, "message": "Schema 9 not found"},
        )

    run(work)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/subjects/nobody/versions", 40401),
        ("GET", "/subjects/nobody/versions/1", 40401),
        ("GET", "/subjects/s/versions/9", 40402),
        ("GET", "/subjects/s/versions/0", 42202),
        ("GET", "/subjects/s/versions/x", 42202),
        ("GET", "/schemas/ids/99", 40403),
        ("GET", "/schemas/ids/x", 404),
        ("GET", "/schemas/ids/99999999999999", 404),
        ("GET", "/schemas/guids/x", 40403),
        ("GET", "/schemas/ids/99/subjects", 40403),
        ("GET", "/config/s", 40408),
        ("GET", "/mode/s", 40409),
        ("DELETE", "/config/nobody", 40401),
        ("DELETE", "/mode/nobody", 40401),
        ("DELETE", "/subjects/nobody", 40401),
        ("DELETE", "/subjects/s/versions/9", 40402),
        ("DELETE", "/subjects/s?permanent=true", 40405),
        ("DELETE", "/subjects/s/versions/1?permanent=true", 40407),
        ("DELETE", "/contexts/.eu", 42211),
        ("GET", "/subjects?offset=-1", 400),
        ("GET", "/subjects?limit=x", 400),
        ("GET", "/nothing/here", 404),
        ("PUT", "/subjects", 405),
        ("PATCH", "/config", 405),
    ],
)
def test_what_cannot_be_had_has_confluents_code(method: str, path: str, code: int) -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        status, body = await registry.ask(method, path)
        assert (status, body["error_code"]) == (int(str(code)[:3]), code), body
        assert body["message"]

    run(work)


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/subjects/s/versions", b"", 422),
        ("/subjects/s/versions", b"null", 422),
        ("/subjects/s/versions", b"{", 400),
        ("/subjects/s/versions", b"[]", 400),
        ("/subjects/s/versions", b'{"schema":1}', 400),
        ("/subjects/s/versions", b'{"schema":"x","version":"1"}', 400),
        ("/subjects/s/versions", b'{"schema":"x","id":99999999999}', 400),
        ("/subjects/s/versions", b'{"schema":"\xff"}', 400),
        ("/subjects/s/versions", b"[" * 100_000, 400),
        ("/subjects/s/versions", b'{"unknown":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        ("/subjects/s/versions", b'{"schema":""}', 42201),
        ("/subjects/s/versions", b'{"schema":"no"}', 42201),
        ("/subjects/s/versions", b'{"schema":"{}","schemaType":"XML"}', 42201),
        ("/subjects/s/versions", b'{"schema":"{}","references":[{"name":"a","subject":"b","version":1}]}', 42201),
        ("/subjects/s/versions", b'{"schema":"{}","ruleSet":{"domainRules":[{"name":"a"}]}}', 42210),
        ("/subjects/s/versions", b'{"schema":"{}","ruleSet":{"domainRules":[{"name":"a","kind":"X"}]}}', 400),
        ("/subjects/%0A/versions", b'{"schema":"{}"}', 42208),
        ("/subjects/s", b'{"schema":"no"}', 42201),
        ("/compatibility/subjects/s/versions/7", b'{"schema":"{}"}', 40402),
        ("/compatibility/subjects/s/versions/latest", b'{"schema":"no"}', 42201),
        ("/compatibility/subjects/s/versions", b'{"schema":""}', 42201),
    ],
)
def test_a_body_that_does_not_fit_is_never_a_failure_of_ours(path: str, body: bytes, code: int) -> None:
    async def work(registry: LocalRegistry) -> None:
        status, answer = await registry.ask("POST", path, body)
        assert (status, answer["error_code"]) == (int(str(code)[:3]), code), answer

    run(work)


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/config", {"compatibility": "SIDEWARD"}, 42203),
        ("/config", {"normalize": "yes"}, 400),
        ("/config/a%09b", {"compatibility": "NONE"}, 42208),
        ("/mode", {}, 42204),
        ("/mode", {"mode": "x"}, 42204),
        ("/mode/s", {"mode": "FORWARD"}, 42204),
        ("/mode", None, 422),
    ],
)
def test_settings_that_cannot_be_are_refused(path: str, body: Any, code: int) -> None:
    async def work(registry: LocalRegistry) -> None:
        status, answer = await registry.ask("PUT", path, body)
        assert (status, answer["error_code"]) == (int(str(code)[:3]), code), answer

    run(work)


def test_a_body_is_read_in_four_types_and_answered_in_three() -> None:
    async def work(registry: LocalRegistry) -> None:
        body = {"schema": A}
        offered = (V1, "application/vnd.schemaregistry+json", "application/json")
        for kind in (*offered, "application/octet-stream", f"{V1}; charset=utf-8"):
            status, _ = await registry.ask("POST", "/subjects/s/versions", body, content_type=kind)
            assert status == 200, kind
        status, answer = await registry.ask("POST", "/subjects/s/versions", body, content_type="text/plain")
        assert (status, answer["error_code"]) == (415, 415)
        for asked, given in (
            (offered[1], offered[1]),
            (offered[2], offered[2]),
            ("*/*", V1),
            ("text/*, */*;q=0.1", V1),
        ):
            status, headers, _ = await registry.exchange("GET", "/subjects", accept=asked)
            assert (status, headers["content-type"]) == (200, given)
        status, headers, content = await registry.exchange("GET", "/subjects", accept="text/html")
        assert (status, json.loads(content)["error_code"], headers["content-type"]) == (406, 406, V1)
        for method, path, sent, kind, expected in (
            ("GET", "/subjects/nobody/versions", None, V1, 404),
            ("GET", "/nothing/here", None, V1, 404),
            ("PUT", "/subjects", None, V1, 405),
            ("POST", "/subjects/s/versions", b"{", V1, 400),
            ("POST", "/subjects/s/versions", b"{}", "text/plain", 415),
            ("POST", "/subjects/s/versions", b"", V1, 422),
        ):
            for asked, given in (*((each, each) for each in offered), ("*/*", V1)):
                status, headers, content = await registry.exchange(method, path, sent, content_type=kind, accept=asked)
                assert (status, headers["content-type"]) == (expected, given), (path, asked)
                assert set(json.loads(content)) == {"error_code", "message"}

    run(work)


def test_a_body_over_the_limit_is_not_read() -> None:
    async def work(registry: LocalRegistry) -> None:
        body = b'{"schema":"' + b"x" * BODY_BYTES + b'"}'
        assert (await registry.ask("POST", "/subjects/s/versions", body))[0] == 413

    run(work)


def test_head_is_answered_and_requests_have_ids() -> None:
    async def work(registry: LocalRegistry) -> None:
        status, headers, content = await registry.exchange("HEAD", "/subjects", x_request_id="mine-1")
        assert (status, content, headers["x-request-id"]) == (200, b"", "mine-1")
        _, headers, _ = await registry.exchange("GET", "/subjects")
        assert len(headers["x-request-id"]) == 32

    run(work)


def test_long_answers_are_compressed_if_asked_for() -> None:
    async def work(registry: LocalRegistry) -> None:
        for number in range(100):
            await registry.ask("POST", f"/subjects/subject-{number:03}/versions", {"schema": A})
        _, plain_headers, plain = await registry.exchange("GET", "/subjects")
        _, headers, content = await registry.exchange("GET", "/subjects", accept_encoding="br, gzip")
        assert headers["content-encoding"] == "gzip"
        assert int(headers["content-length"]) == len(content) < len(plain) == int(plain_headers["content-length"])
        assert gzip.decompress(content) == plain

    run(work)


def test_subjects_with_slashes_and_contexts_are_named_in_quoted_paths() -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        assert await registry.ask("GET", "/subjects") == (200, [":.eu:s", "s", "t/u"])
        assert await registry.ask("GET", "/subjects/t%2Fu/versions") == (200, [1])
        assert await registry.ask("GET", "/subjects/%3A.eu%3As/versions") == (200, [1])
        assert await registry.ask("GET", "/subjects/%3A.%3As/versions") == (200, [1, 2])

    run(work)


def test_a_context_can_stand_in_front_of_every_path() -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        assert await registry.ask("GET", "/contexts/.eu/subjects") == (200, [":.eu:s"])
        assert (await registry.ask("GET", "/contexts/eu/subjects/s/versions/1"))[1]["subject"] == ":.eu:s"
        assert (await registry.ask("GET", "/contexts/.eu/schemas/ids/1"))[1]["schema"] == B
        assert len((await registry.ask("GET", "/contexts/.eu/schemas"))[1]) == 1
        assert (await registry.ask("PUT", "/contexts/.eu/config", {"compatibility": "FULL"}))[0] == 200
        assert await registry.ask("GET", "/config/%3A.eu%3A") == (200, {"compatibilityLevel": "FULL"})
        assert (await registry.ask("PUT", "/contexts/.eu/mode/s", {"mode": "READONLY"}))[0] == 200
        assert await registry.ask("GET", "/mode/%3A.eu%3As") == (200, {"mode": "READONLY"})
        checked = await registry.ask("POST", "/contexts/.eu/compatibility/subjects/s/versions/1", {"schema": toy("z")})
        assert checked == (200, {"is_compatible": False})
        assert await registry.ask("GET", "/contexts/./subjects") == (200, ["s", "t/u"])
        assert await registry.ask("GET", "/contexts") == (200, [".", ".eu"])
        assert (await registry.ask("DELETE", "/contexts/.gone")) == (204, None)

    run(work)


def test_every_list_has_pages() -> None:
    async def work(registry: LocalRegistry) -> None:
        for number in range(5):
            await registry.ask("POST", f"/subjects/s{number}/versions", {"schema": A})
            await registry.ask("POST", "/subjects/s0/versions?force=true", {"schema": toy(f"f{number}")})
        page = "?offset=1&limit=2"
        assert (await registry.ask("GET", f"/subjects{page}"))[1] == ["s1", "s2"]
        assert (await registry.ask("GET", f"/subjects/s0/versions{page}"))[1] == [2, 3]
        assert (await registry.ask("GET", f"/schemas/ids/1/subjects{page}"))[1] == ["s1", "s2"]
        places = [{"subject": name, "version": 1} for name in ("s1", "s2")]
        assert (await registry.ask("GET", f"/schemas/ids/1/versions{page}"))[1] == places
        assert len((await registry.ask("GET", f"/schemas{page}"))[1]) == 2
        assert len((await registry.ask("GET", f"/schemas{page}&latestOnly=true&subjectPrefix=s"))[1]) == 2
        assert (await registry.ask("GET", "/subjects?limit=-1"))[1] == ["s0", "s1", "s2", "s3", "s4"]
        assert (await registry.ask("GET", "/subjects?offset=99"))[1] == []
        for context in (".a", ".b", ".c"):
            await registry.ask("POST", f"/contexts/{context}/subjects/s/versions", {"schema": A})
        assert (await registry.ask("GET", f"/contexts{page}"))[1] == [".a", ".b"]
        assert (await registry.ask("GET", "/contexts?contextPrefix=.b"))[1] == [".b"]
        uses = [{"name": "base", "subject": "s0", "version": 1}]
        ids = []
        for number in range(4):
            body = {"schema": toy(f"u{number}"), "references": uses}
            ids.append((await registry.ask("POST", f"/subjects/u{number}/versions", body))[1]["id"])
        assert (await registry.ask("GET", f"/subjects/s0/versions/1/referencedby{page}"))[1] == ids[1:3]

    run(work)


@pytest.mark.parametrize(
    "path",
    [
        "/subjects",
        "/subjects/s/versions",
        "/subjects/s/versions/1/referencedby",
        "/schemas",
        "/schemas/ids/1/subjects",
        "/schemas/ids/1/versions",
        "/contexts",
    ],
)
def test_a_page_that_cannot_be_is_refused_by_every_list(path: str) -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        for page in ("offset=-1", "offset=x", "limit=x", "offset=99999999999"):
            status, body = await registry.ask("GET", f"{path}?{page}")
            assert (status, body["error_code"]) == (400, 400), page

    run(work)


def test_truth_is_read_in_any_case() -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        await registry.ask("DELETE", "/subjects/s?permanent=False")
        assert (await registry.ask("GET", "/subjects?deleted=True"))[1] == [":.eu:s", "s", "t/u"]

    run(work)


def test_a_check_tells_its_reasons_if_asked_for() -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        path = "/compatibility/subjects/s/versions"
        assert await registry.ask("POST", f"{path}/latest", {"schema": A}) == (200, {"is_compatible": True})
        status, answer = await registry.ask("POST", f"{path}?verbose=true", {"schema": toy("z")})
        assert (status, answer["is_compatible"]) == (200, False)
        assert answer["messages"][-1] == "{validateFields: 'false', compatibility: 'BACKWARD'}"
        empty = await registry.ask("POST", "/compatibility/subjects/new/versions/latest?verbose=true", {"schema": A})
        assert empty == (200, {"is_compatible": True, "messages": []})

    run(work)


def test_what_takes_long_is_done_beside_the_loop_and_what_takes_too_long_is_given_up() -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        path = "/compatibility/subjects/s/versions"
        for steps in (QUICK_STEPS + 1, DEFAULT_STEPS - 10):
            assert await registry.ask("POST", path, {"schema": toy("a", deep=steps)}) == (200, {"is_compatible": True})
        large = toy("a", filler="x" * (LARGE_TEXT + 1))
        assert await registry.ask("POST", path, {"schema": large}) == (200, {"is_compatible": True})
        status, answer = await registry.ask("POST", path, {"schema": toy("a", deep=DEFAULT_STEPS + 1)})
        assert (status, answer["error_code"]) == (422, 42201)

    run(work)


def test_config_is_put_as_compatibility_and_read_as_compatibility_level() -> None:
    async def work(registry: LocalRegistry) -> None:
        assert await registry.ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
        put = await registry.ask("PUT", "/config/s", {"compatibility": "none", "alias": "t", "normalize": True})
        assert put == (200, {"alias": "t", "normalize": True, "compatibility": "NONE"})
        put = await registry.ask("PUT", "/config/s", {"alias": None})
        assert put == (200, {"normalize": True, "compatibility": "NONE"})
        assert await registry.ask("GET", "/config/s") == (200, {"normalize": True, "compatibilityLevel": "NONE"})
        deleted = await registry.ask("DELETE", "/config/s")
        assert deleted == (200, {"normalize": True, "compatibilityLevel": "NONE"})
        assert await registry.ask("GET", "/config/s?defaultToGlobal=true") == (200, {"compatibilityLevel": "BACKWARD"})

    run(work)


def test_an_alias_is_followed_in_paths_of_subjects_but_has_its_own_config() -> None:
    async def work(registry: LocalRegistry) -> None:
        await filled(registry)
        await registry.ask("PUT", "/config/old", {"alias": "s"})
        assert await registry.ask("GET", "/subjects/old/versions") == (200, [1, 2])
        assert (await registry.ask("GET", "/schemas/ids/1?subject=old"))[1]["subject"] == "s"
        assert (await registry.ask("GET", "/config/old"))[1]["alias"] == "s"
        shown = (await registry.ask("GET", "/schemas?aliases=true&subjectPrefix=old"))[1]
        assert [(each["subject"], each["version"], each["aliases"]) for each in shown] == [
            ("s", 1, ["old"]),
            ("s", 2, ["old"]),
        ]

    run(work)


def test_references_are_shown_with_their_context_if_asked_for() -> None:
    async def work(registry: LocalRegistry) -> None:
        await registry.ask("POST", "/subjects/%3A.eu%3Abase/versions", {"schema": A})
        references = [{"name": "b", "subject": "base", "version": 1}]
        await registry.ask("POST", "/subjects/%3A.eu%3As/versions", {"schema": B, "references": references})
        path = "/subjects/%3A.eu%3As/versions/1"
        assert (await registry.ask("GET", path))[1]["references"] == references
        qualified = [{"name": "b", "subject": ":.eu:base", "version": 1}]
        assert (await registry.ask("GET", f"{path}?referenceFormat=qualified"))[1]["references"] == qualified
        assert await registry.ask("GET", "/subjects/%3A.eu%3Abase/versions/1/referencedby") == (200, [2])

    run(work)


def test_tags_are_told_if_asked_for() -> None:
    async def work(registry: LocalRegistry) -> None:
        tagged = toy("a", tags={"r": ["PII"], "r.a": ["PII", "X"], "r.b": ["X"]})
        await registry.ask("POST", "/subjects/s/versions", {"schema": tagged})
        told = (await registry.ask("GET", "/subjects/s/versions/1?findTags=PII"))[1]["schemaTags"]
        assert told == [
            {"schemaEntity": {"entityPath": "r", "entityType": "sr_record"}, "tags": ["PII"]},
            {"schemaEntity": {"entityPath": "r.a", "entityType": "sr_field"}, "tags": ["PII", "X"]},
        ]
        assert len((await registry.ask("GET", "/schemas/ids/1?findTags=*"))[1]["schemaTags"]) == 3
        entity = {"schemaEntity": {"entityPath": "c", "entityType": "sr_field"}, "tags": ["NEW"]}
        made = await registry.ask("POST", "/subjects/s/versions/1/tags", {"newVersion": 2, "tagsToAdd": [entity]})
        assert json.loads(made[1]["schema"])["tags"]["c"] == ["NEW"]

    run(work)


def test_who_answers_is_told_and_associations_are_none() -> None:
    async def work(registry: LocalRegistry) -> None:
        assert await registry.ask("GET", "/") == (200, {})
        assert await registry.ask("POST", "/") == (200, {})
        assert sorted((await registry.ask("GET", "/schemas/types"))[1]) == ["AVRO", "JSON", "PROTOBUF"]
        clusters = (await registry.ask("GET", "/v1/metadata/id"))[1]["scope"]["clusters"]
        assert clusters == {"kafka-cluster": "k", "schema-registry-cluster": "sr"}
        assert (await registry.ask("GET", "/v1/metadata/version"))[0] == 200
        asked = "/associations/resources/-/orders?resourceType=topic&associationType=value"
        assert await registry.ask("GET", asked) == (200, [])

    run(work)


def test_the_table_of_routes_tells_of_itself() -> None:
    async def work(registry: LocalRegistry) -> None:
        status, document = await registry.ask("GET", "/openapi.json")
        assert status == 200
        assert set(document["paths"]["/subjects/{subject}/versions"]) == {"get", "post"}
        body = document["paths"]["/config"]["put"]["requestBody"]["content"]
        assert V1 in body

    run(work)


def test_there_are_no_associations_and_no_keys_and_who_wants_one_is_told_why() -> None:
    async def work(registry: LocalRegistry) -> None:
        assert await registry.ask("GET", "/associations/resources/-/orders?resourceType=topic") == (200, [])
        await registry.ask("POST", "/subjects/orders-value/versions", {"schema": toy("a")})
        for asked in ("resourceType=topic", "associationType=value", "lifecycle=STRONG"):
            assert await registry.ask("GET", f"/schemas?{asked}") == (200, [])
        assert len((await registry.ask("GET", "/schemas"))[1]) == 1
        assert await registry.ask("GET", "/dek-registry/v1/keks") == (200, [])
        keks = "/dek-registry/v1/keks"
        for method, path, expected in (
            ("POST", "/associations", (422, 42212)),
            ("PUT", "/associations", (422, 42212)),
            ("POST", keks, (422, 42271)),
            ("GET", f"{keks}/k", (404, 40470)),
            ("POST", f"{keks}/k/deks", (404, 40470)),
            ("GET", f"{keks}/k/deks/s/versions/1", (404, 40470)),
        ):
            status, told = await registry.ask(method, path, {} if method != "GET" else None)
            assert (status, told["error_code"]) == expected

    run(work)


def _avro(*fields: str) -> str:
    named = [{"name": name, "type": "int", "default": 0} for name in fields]
    return json.dumps({"type": "record", "name": "R", "fields": named})


def _json(*fields: str) -> str:
    return json.dumps({"type": "object", "properties": {name: {"type": "string"} for name in fields}})


def _protobuf(*fields: str) -> str:
    lines = "".join(f"int32 {name} = {ord(name)};" for name in fields)
    return f'syntax = "proto3"; message R {{ {lines} }}'


def _wide_protobuf(count: int) -> str:
    lines = "".join(f"int32 f{number} = {number};" for number in range(1, count + 1))
    return f'syntax = "proto3"; message R {{ {lines} }}'


@pytest.mark.parametrize(
    ("language", "written", "path"),
    [("AVRO", _avro, "R"), ("JSON", _json, "object"), ("PROTOBUF", _protobuf, "R")],
)
def test_tags_of_what_is_gone_are_not_propagated(language: str, written: Callable[..., str], path: str) -> None:
    async def work(registry: LocalRegistry) -> None:
        tags = [{"schemaEntity": {"entityPath": f"{path}.{name}"}, "tags": ["PII"]} for name in "ab"]
        first = {"schema": written("a", "b"), "schemaType": language, "schemaTagsToAdd": tags}
        assert (await registry.ask("POST", "/subjects/s/versions", first))[0] == 200
        second = {"schema": written("b", "c"), "schemaType": language, "propagateSchemaTags": True}
        status, answer = await registry.ask("POST", "/subjects/s/versions?force=true", second)
        assert status == 200, answer
        told = (await registry.ask("GET", "/subjects/s/versions/2?findTags=*"))[1]["schemaTags"]
        assert [(each["schemaEntity"]["entityPath"], each["tags"]) for each in told] == [(f"{path}.b", ["PII"])]

    run(work, Machine(LANGUAGES))


@pytest.mark.parametrize(("language", "written"), [("AVRO", _avro), ("JSON", _json)])
def test_tags_for_what_is_not_there_are_refused(language: str, written: Callable[..., str]) -> None:
    async def work(registry: LocalRegistry) -> None:
        schema = {"schema": written("a"), "schemaType": language}
        nowhere = [{"schemaEntity": {"entityPath": "no.where"}, "tags": ["PII"]}]
        assert (await registry.ask("POST", "/subjects/s/versions", schema))[0] == 200
        for path, body in (
            ("/subjects/s/versions", {**schema, "schemaTagsToAdd": nowhere}),
            ("/subjects/s/versions", {**schema, "schemaTagsToRemove": nowhere}),
            ("/subjects/s/versions/1/tags", {"newVersion": 2, "tagsToAdd": nowhere}),
            ("/subjects/s/versions/1/tags", {"newVersion": 2, "tagsToRemove": nowhere}),
        ):
            assert await registry.ask("POST", path, body) == (
                422,
                {
                    "error_code": 42201,
                    "message": f"Invalid schema of type {language}, details: "
                    "No matching path 'no.where' found in the schema",
                },
            )

    run(work, Machine(LANGUAGES))


@pytest.mark.parametrize(
    ("language", "old", "new"),
    [
        ("AVRO", _avro(*(f"f{n}" for n in range(1000))), _avro(*(f"f{n}" for n in range(1001)))),
        ("JSON", _json(*(f"f{n}" for n in range(1000))), _json(*(f"f{n}" for n in range(999)))),
        ("PROTOBUF", _wide_protobuf(1000), _wide_protobuf(999)),
    ],
)
def test_a_check_of_a_thousand_fields_takes_200_ms_with_all_that_belongs_to_it(
    language: str, old: str, new: str
) -> None:
    async def work(registry: LocalRegistry) -> None:
        assert (await registry.ask("POST", "/subjects/s/versions", {"schema": old, "schemaType": language}))[0] == 200
        path, taken_s = "/compatibility/subjects/s/versions", []
        for spaces in range(3):  # another text each time: none is known already
            began_s = time.process_time()
            body = {"schema": new + " " * spaces, "schemaType": language}
            assert await registry.ask("POST", path, body) == (200, {"is_compatible": True})
            taken_s.append(time.process_time() - began_s)
        assert min(taken_s) < 0.2

    run(work, Machine(LANGUAGES))
