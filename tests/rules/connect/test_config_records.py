"""The bytes of connect-configs, connect-status and connect-offsets: Java's, both ways."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.connect import config_records as c
from ottla.connect import offsets as o
from ottla.connect import statuses as s

KEY = bytes(range(32))

# As Apache Kafka Connect 4.3.1 wrote them.
CONFIGS: list[tuple[bytes, bytes | None, c.ConfigRecord]] = [
    (
        b"connector-lines",
        b'{"properties":{"connector.class":"FileStreamSource","file":"/a","topic":"t","name":"lines"}}',
        c.ConnectorPut("lines", {"connector.class": "FileStreamSource", "file": "/a", "topic": "t", "name": "lines"}),
    ),
    (b"connector-a-b", None, c.ConnectorPut("a-b", None)),
    (b"task-a-b-0", b'{"properties":{"x":"1"}}', c.TaskPut("a-b", 0, {"x": "1"})),
    (b"commit-a-b", b'{"tasks":2}', c.TasksCommitted("a-b", 2)),
    (
        b"target-state-a",
        b'{"state":"PAUSED","state.v2":"STOPPED"}',
        c.TargetStatePut("a", c.TargetState.STOPPED),
    ),
    (b"target-state-a", b'{"state":"STARTED","state.v2":"STARTED"}', c.TargetStatePut("a", c.TargetState.STARTED)),
    (b"target-state-a", None, c.TargetStatePut("a", None)),
    (b"tasks-fencing-a", b'{"task-count":3}', c.TaskCountPut("a", 3)),
    (
        b"session-key",
        b'{"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","algorithm":"HmacSHA256","creation-timestamp":17}',
        c.SessionKeyPut(KEY, "HmacSHA256", 17),
    ),
    (
        b"restart-connector-a",
        b'{"include-tasks":true,"only-failed":false}',
        c.RestartAsked("a", include_tasks=True, only_failed=False),
    ),
    (b"logger-cluster-org.apache", b'{"level":"DEBUG"}', c.LoggerLevelPut("org.apache", "DEBUG")),
]


@pytest.mark.parametrize(("key", "value", "record"), CONFIGS, ids=lambda each: str(each)[:40])
def test_a_record_of_the_config_topic_is_read_and_written_as_java_does(
    key: bytes, value: bytes | None, record: c.ConfigRecord
) -> None:
    assert c.decode(key, value) == record
    assert c.encode(record) == (key, value)


STATUSES: list[tuple[bytes, bytes | None, s.StatusRecord]] = [
    (
        b"status-connector-a-b",
        b'{"state":"RUNNING","trace":null,"worker_id":"127.0.0.1:8083","generation":3,"version":"4.3.1"}',
        s.ConnectorStatusPut("a-b", s.Status(s.State.RUNNING, "127.0.0.1:8083", 3, None, "4.3.1")),
    ),
    (
        b"status-task-a-b-1",
        b'{"state":"FAILED","trace":"x","worker_id":"w","generation":1,"version":null}',
        s.TaskStatusPut("a-b", 1, s.Status(s.State.FAILED, "w", 1, "x")),
    ),
    (b"status-task-a-b-1", None, s.TaskStatusPut("a-b", 1, None)),
    (
        b"status-topic-t:connector-a",
        b'{"topic":{"name":"t","connector":"a","task":0,"discoverTimestamp":17}}',
        s.TopicUsed("a", "t", 0, 17),
    ),
    (b"status-topic-t:connector-a", None, s.TopicUsed("a", "t", seen_ms=None)),
]


@pytest.mark.parametrize(("key", "value", "record"), STATUSES, ids=lambda each: str(each)[:40])
def test_a_record_of_the_status_topic_is_read_and_written_as_java_does(
    key: bytes, value: bytes | None, record: s.StatusRecord
) -> None:
    assert s.decode(key, value) == record
    assert s.encode(record) == (key, value)


def test_a_status_with_a_next_attempt_carries_members_that_java_passes_over() -> None:
    status = s.Status(s.State.FAILED, "w", 1, "x", None, restarts=2, next_restart_ms=99)
    key, value = s.encode(s.ConnectorStatusPut("a", status))
    assert value is not None
    assert value.endswith(b'"version":null,"restarts":2,"next_restart_ms":99}')
    assert s.decode(key, value) == s.ConnectorStatusPut("a", status)


def test_an_offset_is_kept_under_the_bytes_it_has() -> None:
    offsets = o.Offsets()
    offsets.replay(o.decode(b'["mirror",{"topic":"t","partition":0}]', b'{"offset":5}'))
    assert offsets.key("mirror", {"partition": 0, "topic": "t"}) == b'["mirror",{"topic":"t","partition":0}]'
    assert offsets.key("mirror", {"partition": 1, "topic": "t"}) == b'["mirror",{"partition":1,"topic":"t"}]'
    offsets.replay(o.decode(b'["mirror",{"topic":"t","partition":0}]', None))
    assert offsets.of("mirror") == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"nothing", b"{}"),
        (b"connector-a", b"[]"),
        (b"connector-a", b'{"properties":{"a":1}}'),
        (b"connector-a", b"{"),
        (b"task-a", b'{"properties":{}}'),
        (b"task-a-99999999999999", b'{"properties":{}}'),
        (b"commit-a", b'{"tasks":-1}'),
        (b"commit-a", b'{"tasks":true}'),
        (b"commit-a", None),
        (b"target-state-a", b'{"state":"FLYING"}'),
        (b"session-key", b'{"key":"%","algorithm":"x","creation-timestamp":1}'),
        (b"\xff", b"{}"),
        (None, b"{}"),
    ],
)
def test_what_nobody_would_write_is_unreadable(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(c.Unreadable):
        c.decode(key, value)


names = st.text(min_size=1, max_size=12).filter(lambda name: name.isprintable())
texts = st.dictionaries(st.text(max_size=8), st.none() | st.text(max_size=20), max_size=4)
records: st.SearchStrategy[c.ConfigRecord] = st.one_of(
    st.builds(c.ConnectorPut, names, st.none() | texts),
    st.builds(c.TaskPut, names, st.integers(0, 20), texts),
    st.builds(c.TasksCommitted, names, st.integers(0, 20)),
    st.builds(c.TargetStatePut, names, st.none() | st.sampled_from(c.TargetState)),
    st.builds(c.SessionKeyPut, st.binary(max_size=40), names, st.integers(0, 1 << 40)),
    st.builds(c.RestartAsked, names, st.booleans(), st.booleans()),
)


@given(records)
def test_every_record_comes_back_as_it_was(record: c.ConfigRecord) -> None:
    assert c.decode(*c.encode(record)) == record


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_record_or_unreadable(key: bytes, value: bytes | None) -> None:
    readers: list[Any] = [c.decode, s.decode, o.decode]
    for read in readers:
        with suppress(c.Unreadable):
            read(key, value)
