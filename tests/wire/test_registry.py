"""Registries over a real cluster: the topic's bytes, restarts, several at once, a lost leader, Confluent's client."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.common.schema_registry_client import Metadata, MetadataProperties
from confluent_kafka.schema_registry.error import SchemaRegistryError

from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.registry.api.needs import FREE, NEEDS
from ottla.registry.journal.topic import WrongTopic
from ottla.registry.machine.commands import Register, Sent
from ottla.registry.runner import NotLeading, Runner
from ottla.testing import Cluster
from tests.support.patience import eventually
from tests.support.registries import Registry, ask
from tests.support.toy_language import toy

A, B = toy("a"), toy("a", "b?")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(1, transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1) as cluster:
        yield cluster


Starting = Callable[..., Registry]


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"_schemas-{request.node.name.removeprefix('test_')[:200]}"


@pytest.fixture
def start(kafka: Cluster, topic: str) -> Iterator[Starting]:
    """Registries of one topic, which belongs to this test."""
    started: list[Registry] = []

    def begin(settings: Mapping[str, object] = MappingProxyType({})) -> Registry:
        registry = Registry(kafka.bootstrap_servers, {"kafkastore.topic": topic, **settings})
        registry.__enter__()
        started.append(registry)
        if settings.get("leader.eligibility", True):
            _until(lambda: registry.service.leader is not None)  # else the next one would lead as well as this one
        return registry

    yield begin
    for registry in started:
        registry.close()


def written(kafka: Cluster, topic: str) -> list[tuple[str, str | None]]:
    """What lies in the topic, but for the NOOPs with which a registry takes the lead."""
    found = [(record.key, record.value) for record in kafka.consume(topic)]
    texts = [((key or b"").decode(), value.decode() if value is not None else None) for key, value in found]
    return [(key, value) for key, value in texts if "NOOP" not in key or value is not None]


def made(registry: Registry, subject: str, text: str, **more: Any) -> dict[str, Any]:
    status, answer = registry.ask("POST", f"/subjects/{subject}/versions", {"schema": text, **more})
    assert status == 200, answer
    assert isinstance(answer, dict)
    return answer


def test_every_kind_of_write_lies_in_the_topic_with_confluents_bytes(
    start: Starting, kafka: Cluster, topic: str
) -> None:
    registry = start()
    made(registry, "s", A)
    made(registry, "%3A.eu%3As", A)
    assert registry.ask("PUT", "/config", {"compatibility": "FULL"})[0] == 200
    assert registry.ask("PUT", "/mode/t", {"mode": "IMPORT"})[0] == 200
    assert registry.ask("DELETE", "/mode/t")[0] == 200
    assert registry.ask("DELETE", "/subjects/s") == (200, [1])
    assert registry.ask("DELETE", "/subjects/s?permanent=true") == (200, [1])
    quoted = A.replace('"', '\\"')
    assert written(kafka, topic) == [
        (
            '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            f'{{"subject":"s","version":1,"id":1,"schemaType":"AVRO","schema":"{quoted}","deleted":false}}',
        ),
        (
            '{"keytype":"CONTEXT","tenant":"default","context":".eu","magic":0}',
            '{"tenant":"default","context":".eu"}',
        ),
        (
            '{"keytype":"SCHEMA","subject":":.eu:s","version":1,"magic":1}',
            f'{{"subject":":.eu:s","version":1,"id":1,"schemaType":"AVRO","schema":"{quoted}","deleted":false}}',
        ),
        ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"FULL"}'),
        ('{"keytype":"CLEAR_SUBJECT","subject":"t","magic":0}', '{"subject":"t"}'),
        ('{"keytype":"MODE","subject":"t","magic":0}', '{"subject":"t","mode":"IMPORT"}'),
        ('{"keytype":"MODE","subject":"t","magic":0}', None),
        ('{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', '{"subject":"s","version":1}'),
        ('{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None),
        ('{"keytype":"NOOP","magic":0}', '{"ids":{".":1}}'),
    ]


ASKED = {
    "/subjects": ("", "?deleted=true", "?deletedOnly=true"),
    "/subjects/{subject}/versions": ("s", "s?deletedAsNegative=true", "nobody"),
    "/subjects/{subject}/versions/{version}": ("s latest", "s 1?deleted=true", "s 1", "s 2?findTags=*"),
    "/subjects/{subject}/versions/{version}/schema": ("s 2",),
    "/subjects/{subject}/versions/{version}/referencedby": ("base 1", "base 1?deleted=true"),
    "/subjects/{subject}/metadata": ("s?key=o&value=me", "s?key=o&value=you"),
    "/schemas": ("", "?deleted=true&subjectPrefix=:*:", "?latestOnly=true", "?ruleType=CEL", "?aliases=true"),
    "/schemas/types": ("",),
    "/schemas/ids/{id}": ("1", "2?fetchMaxId=true", "1?subject=:.eu:", "99"),
    "/schemas/ids/{id}/schema": ("2",),
    "/schemas/ids/{id}/subjects": ("1", "1?deleted=true"),
    "/schemas/ids/{id}/versions": ("1", "1?deleted=true"),
    "/schemas/guids/{guid}": ("GUID",),
    "/schemas/guids/{guid}/ids": ("GUID",),
    "/contexts": ("",),
    "/config": ("", "?defaultToGlobal=true"),
    "/config/{subject}": ("s", "t", "t?defaultToGlobal=true", ":.eu:"),
    "/mode": ("", "?defaultToGlobal=true"),
    "/mode/{subject}": ("t", "s", "s?defaultToGlobal=true"),
}
"""Of each route that reads: what stands in its named places, and its query."""


def _questions(guid: str) -> list[str]:
    found = []
    for path, given in ASKED.items():
        for each in given:
            values, _, query = each.replace("GUID", guid).partition("?")
            target = path
            for value in values.split():
                target = re.sub(r"{[a-z]+}", quote(value, safe=""), target, count=1)
            found.append(f"{target}?{query}")
    return found


def test_a_second_registry_that_reads_the_topic_answers_every_question_alike(start: Starting) -> None:
    first = start()
    made(first, "base", A)
    made(first, "s", A)
    rule = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
    more = {"metadata": {"properties": {"o": "me"}}, "ruleSet": {"domainRules": [rule]}}
    guid = made(first, "s", B, references=[{"name": "b", "subject": "base", "version": 1}], **more)["guid"]
    made(first, "%3A.eu%3As", B)
    made(first, "gone", toy("z"))
    assert first.ask("DELETE", "/subjects/gone") == (200, [1])
    assert first.ask("DELETE", "/subjects/s/versions/1") == (200, 1)
    assert first.ask("PUT", "/config/s", {"compatibility": "NONE", "alias": "x"})[0] == 200
    assert first.ask("PUT", "/mode/t", {"mode": "READONLY"})[0] == 200
    assert first.ask("PUT", "/contexts/.eu/config", {"compatibility": "FULL"})[0] == 200
    reading = {path for method, path in (*NEEDS, *FREE) if method == "GET"}
    assert reading == set(ASKED)
    questions = _questions(guid)
    said = {path: first.ask("GET", path) for path in questions}
    second = start()
    assert {path: second.ask("GET", path) for path in questions} == said
    first.stop()
    third = start()
    assert {path: third.ask("GET", path) for path in questions} == said


def test_a_write_can_be_read_where_it_was_sent_even_if_another_registry_leads(start: Starting) -> None:
    leader, follower = start(), start()
    made(leader, "s", A)
    assert (leader.service.leads, follower.service.leads) == (True, False)
    for number in range(20):
        level = ("NONE", "FULL")[number % 2]
        assert follower.ask("PUT", "/config/s", {"compatibility": level}) == (200, {"compatibility": level})
        assert follower.ask("GET", "/config/s") == (200, {"compatibilityLevel": level})
    answer = made(follower, "s", B)
    assert (answer["id"], answer["version"]) == (2, 2)
    assert follower.ask("GET", "/subjects/s/versions") == (200, [1, 2])
    status, refusal = follower.ask("DELETE", "/subjects/nobody")
    assert (status, refusal) == (404, {"error_code": 40401, "message": "Subject 'nobody' not found."})
    assert (leader.service.leads, follower.service.leads) == (True, False)


def test_who_was_replaced_passes_writes_on(start: Starting) -> None:
    old, new = start(), start()
    made(old, "s", A)
    taken_over(new)
    answer = made(old, "s", B)
    assert (answer["id"], answer["version"]) == (2, 2)
    assert (old.service.leads, new.service.leads) == (False, True)
    assert (old.service.leader, new.service.leader) == (new.url, new.url)


def test_the_topic_itself_refuses_who_was_replaced_and_has_not_heard_of_it(
    start: Starting, kafka: Cluster, topic: str
) -> None:
    """As a registry that hung for an hour: it believes that it leads, and reads nothing that says otherwise."""
    old, new = start(), start()
    made(old, "s", A)
    reading = next(task for task in old.service._tasks if task.get_name() == "registry-reader")
    old.do(lambda: _cancelled(reading))
    taken_over(new)
    before = written(kafka, topic)
    runner = runner_of(old)
    assert runner.leads
    with pytest.raises(NotLeading):
        old.do(lambda: runner.submit(Register("s", Sent(B))))
    assert not runner.leads
    assert written(kafka, topic) == before
    assert made(new, "s", toy("a", "c?"))["id"] == 2


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait((task,))


def runner_of(registry: Registry) -> Runner:
    runner = registry.service._runner
    assert runner is not None
    return runner


def taken_over(registry: Registry) -> None:
    runner = runner_of(registry)
    registry.do(runner.catch_up)
    registry.do(lambda: runner.take_lead(runner.follower.leader))
    assert runner.leads


def test_a_hundred_schemas_at_once_through_two_registries_get_a_hundred_ids(start: Starting) -> None:
    registries = start(), start()
    with ThreadPoolExecutor(20) as pool:
        answers = list(
            pool.map(lambda number: made(registries[number % 2], f"s{number}", toy(f"f{number}")), range(100))
        )
    assert sorted(answer["id"] for answer in answers) == list(range(1, 101))
    assert {answer["version"] for answer in answers} == {1}


def test_one_schema_twenty_times_at_once_has_one_id_and_one_version(start: Starting) -> None:
    registries = start(), start()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda number: made(registries[number % 2], "s", A), range(20)))
    assert {(answer["id"], answer["version"]) for answer in answers} == {(1, 1)}
    assert [registry.ask("GET", "/subjects/s/versions") for registry in registries] == [(200, [1])] * 2


def test_a_leader_that_is_killed_under_load_loses_nothing_that_was_acknowledged(start: Starting) -> None:
    leader, follower = start(), start()
    made(leader, "first", A)
    assert leader.service.leads
    acknowledged: dict[str, int] = {}
    ending = threading.Event()

    def write(worker: int) -> None:
        number = 0
        while not ending.is_set():
            number += 1
            subject = f"w{worker}-{number}"
            target = (leader, follower)[number % 2]
            try:
                status, answer = ask(target.url, "POST", f"/subjects/{subject}/versions", {"schema": toy(subject)})
            except OSError:
                continue
            if status == 200:
                acknowledged[subject] = answer["id"]

    urls = leader.url, follower.url
    workers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    _until(lambda: len(acknowledged) > 20)
    leader.kill()
    count = len(acknowledged)
    _until(lambda: len(acknowledged) > count + 40)
    ending.set()
    for worker in workers:
        worker.join()
    assert urls[1] == follower.service.leader
    assert len(set(acknowledged.values())) == len(acknowledged)
    fresh = start()
    for registry in (follower, fresh):
        for subject, id in acknowledged.items():
            assert registry.ask("GET", f"/subjects/{subject}/versions/1")[1]["id"] == id


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_ids_go_on_after_a_restart_even_if_the_last_was_deleted_for_good(start: Starting) -> None:
    first = start()
    made(first, "s", A)
    made(first, "t", B)
    assert first.ask("DELETE", "/subjects/t")[0] == 200
    assert first.ask("DELETE", "/subjects/t?permanent=true")[0] == 200
    first.stop()
    assert made(start(), "u", toy("z"))["id"] == 3


def test_a_registry_that_may_not_lead_does_not(start: Starting) -> None:
    alone = start({"leader.eligibility": False})
    status, answer = alone.ask("POST", "/subjects/s/versions", {"schema": A})
    assert (status, answer["error_code"]) == (500, 50004)
    other = start()
    _until(lambda: other.service.leads)
    _until(lambda: alone.service.leader == other.url)
    assert made(alone, "s", A)["id"] == 1


def test_a_schema_larger_than_the_topic_takes_is_refused_and_nothing_else_is_lost(
    start: Starting, kafka: Cluster, topic: str
) -> None:
    kafka.create_topic(topic, 1, cleanup_policy="compact", max_message_bytes=20_000)
    registry = start()
    status, answer = registry.ask("POST", "/subjects/s/versions", {"schema": toy("a", filler="x" * 30_000)})
    assert (status, answer["error_code"]) == (422, 42209)
    answer = made(registry, "s", A)
    assert (answer["id"], answer["version"]) == (1, 1)


@pytest.mark.parametrize(
    ("partitions", "policy", "words"), [(1, "delete", "cleanup.policy"), (2, "compact", "partition")]
)
def test_a_topic_that_would_lose_schemas_is_refused(kafka: Cluster, partitions: int, policy: str, words: str) -> None:
    name = f"_schemas-{policy}-{partitions}"
    kafka.create_topic(name, partitions, cleanup_policy=policy)
    with pytest.raises(WrongTopic, match=words), Registry(kafka.bootstrap_servers, {"kafkastore.topic": name}):
        pass


def test_bodies_of_thirty_megabytes_are_refused_and_others_still_served(start: Starting) -> None:
    registry = start()
    body = b'{"schema":"' + b"x" * (30 << 20) + b'"}'
    with suppress(OSError):  # the answer may come, and the connection end, before all was sent
        assert registry.ask("POST", "/subjects/s/versions", body)[0] == 413
    assert made(registry, "s", A)["id"] == 1


# Confluent's own client.


def test_confluents_client_registers_evolves_checks_and_deletes(start: Starting) -> None:
    client = SchemaRegistryClient({"url": start().url})
    first, second = Schema(A, "AVRO"), Schema(B, "AVRO")
    assert client.register_schema("s", first) == 1
    assert client.register_schema("s", second) == 2
    assert client.get_schema(1).schema_str == A
    assert client.lookup_schema("s", second).version == 2
    latest = client.get_latest_version("s")
    assert (latest.version, latest.schema_id, latest.guid) == (2, 2, client.get_version("s", 2).guid)
    assert latest.guid is not None
    assert client.get_schema_by_guid(latest.guid).schema_str == B
    assert client.get_subjects() == ["s"]
    assert client.get_versions("s") == [1, 2]
    assert client.test_compatibility("s", Schema(toy("z"), "AVRO")) is False
    assert client.test_compatibility_all_versions("s", second) is True
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("s", Schema(toy("z"), "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40901)
    assert client.delete_version("s", 1) == 1
    assert client.delete_subject("s") == [2]
    assert client.delete_subject("s", permanent=True) == [1, 2]


def test_confluents_client_sets_config_modes_contexts_references_and_metadata(start: Starting) -> None:
    client = SchemaRegistryClient({"url": start().url})
    client.set_config("s", ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_config("s").compatibility_level == ConfigCompatibilityLevel.FULL
    assert client.update_mode("t", "READONLY") == "READONLY"
    assert client.get_mode("t") == "READONLY"
    client.register_schema("base", Schema(A, "AVRO"))
    described = Metadata(None, MetadataProperties({"app": "1"}), None)
    referring = Schema(B, "AVRO", references=[SchemaReference("b", "base", 1)], metadata=described)
    client.register_schema(":.eu:base", Schema(A, "AVRO"))
    client.register_schema("u", referring)
    assert client.get_referenced_by("base", 1) == [2]
    assert client.get_latest_with_metadata("u", {"app": "1"}).version == 1
    assert client.get_contexts() == [".", ".eu"]
    assert sorted(client.get_schema_types()) == ["AVRO", "JSON", "PROTOBUF"]


def _delete(kafka: Cluster, topic: str) -> None:
    with Client(parse_bootstrap(kafka.bootstrap_servers)) as client:
        assert admin.delete_topics(client, [topic]) == {topic: None}


def test_a_topic_that_was_deleted_and_made_anew_is_read_from_its_beginning(
    start: Starting, kafka: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic is the truth: no registry goes on with schemas, or ids, that a restart would not know."""
    leader, follower = start(), start()
    for subject in ("s", "t"):
        made(leader, subject, toy(subject))
    _delete(kafka, topic)
    kafka.create_topic(topic, cleanup_policy="compact")
    for registry in (leader, follower):
        eventually(lambda registry=registry: registry.ask("GET", "/subjects") == (200, []))  # type: ignore[misc]
    assert made(follower, "s", A)["id"] == 1
    # At once where it was sent; whoever led may lead no longer, and reads it a moment later.
    eventually(lambda: leader.ask("GET", "/subjects/s/versions/1")[1].get("schema") == A)
    assert "was deleted and made anew: the 2 subjects of the old one are gone" in caplog.text
    assert [key for key, _ in written(kafka, topic)] == ['{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}']


def test_a_topic_that_is_gone_is_told_of_and_what_is_known_is_answered(
    start: Starting, kafka: Cluster, topic: str
) -> None:
    registry = start({"kafkastore.timeout.ms": "1000"})
    made(registry, "s", A)
    _delete(kafka, topic)
    eventually(lambda: "registry_topic" in registry.service.troubles())
    assert registry.ask("GET", "/subjects") == (200, ["s"])
    status, told = registry.ask("POST", "/subjects/s/versions", {"schema": B})
    assert (status, told["error_code"] // 100) == (500, 500)
