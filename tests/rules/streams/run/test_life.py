"""The states of an application, and who is told of them: Kafka Streams' names and rules."""

import threading

import pytest

from ottla.streams.app import StreamsApp
from ottla.streams.run.life import (
    CREATED,
    ERROR,
    NOT_RUNNING,
    PENDING_ERROR,
    PENDING_SHUTDOWN,
    REBALANCING,
    RUNNING,
    Hooks,
    Life,
)
from ottla.streams.topology.topology import Topology
from tests.support.patience import PATIENCE_SECONDS


def listened() -> tuple[Life, list[tuple[str, str]]]:
    hooks = Hooks()
    told: list[tuple[str, str]] = []
    hooks.on_state = lambda new, old: told.append((new, old))
    return Life(hooks), told


def test_a_listener_is_told_each_change_with_the_new_state_first() -> None:
    life, told = listened()
    life.to(REBALANCING)
    life.to(RUNNING)
    life.to(PENDING_SHUTDOWN)
    life.end(None)
    assert told == [
        (REBALANCING, CREATED),
        (RUNNING, REBALANCING),
        (PENDING_SHUTDOWN, RUNNING),
        (NOT_RUNNING, PENDING_SHUTDOWN),
    ]


def test_one_that_is_told_to_stop_while_it_starts_does_not_run() -> None:
    life, _ = listened()
    life.to(REBALANCING)
    life.to(PENDING_SHUTDOWN)
    assert not life.to(RUNNING)
    assert life.state == PENDING_SHUTDOWN


def test_an_error_ends_in_error_by_way_of_pending_error() -> None:
    life, told = listened()
    life.to(REBALANCING)
    life.end(ValueError())
    assert told[1:] == [(PENDING_ERROR, REBALANCING), (ERROR, PENDING_ERROR)]


def test_an_error_while_it_shuts_down_is_none() -> None:
    life, _ = listened()
    life.to(PENDING_SHUTDOWN)
    life.end(ValueError())
    assert life.state == NOT_RUNNING


def test_who_pauses_waits_until_resumed_or_stopped() -> None:
    hooks, stop = Hooks(), threading.Event()
    hooks.pause()
    assert hooks.paused
    waiting = threading.Thread(target=hooks.wait_while_paused, args=(stop, 0.001))
    waiting.start()
    hooks.resume()
    waiting.join(PATIENCE_SECONDS)
    assert not waiting.is_alive()
    hooks.pause()
    stop.set()
    hooks.wait_while_paused(stop)


def app() -> StreamsApp:
    topology = Topology()
    topology.add_source("in", "lines")
    topology.add_sink("out", "lines-again", "in")
    return StreamsApp("copy", topology)


def test_an_application_is_created_until_it_runs_and_a_changed_one_has_the_same_listeners() -> None:
    one = app()
    one.set_state_listener(lambda new, old: None)
    assert one.state == CREATED
    assert one.metrics() == ()
    assert one.changed(application_id="copy-2").hooks is one.hooks


def test_pausing_is_seen() -> None:
    one = app()
    one.pause()
    assert one.is_paused
    one.resume()
    assert not one.is_paused


@pytest.mark.parametrize("name", ["StreamsBuilder", "StreamsApp", "Serdes", "StreamThreadExceptionResponse"])
def test_a_star_import_gives_the_names_of_the_package(name: str) -> None:
    given: dict[str, object] = {}
    exec("from ottla.streams import *", given)
    assert name in given
