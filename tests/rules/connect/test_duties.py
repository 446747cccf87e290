"""What a worker does for the connectors that fell to it."""

from collections.abc import Iterable

from ottla.connect.config_records import (
    ConfigRecord,
    ConnectorPut,
    RestartAsked,
    TargetState,
    TargetStatePut,
    TaskPut,
    TasksCommitted,
)
from ottla.connect.configs import Configs
from ottla.connect.duties import Duties, Effect, RestartRule, Say, StandBy, StartJob, StopJob
from ottla.connect.statuses import ConnectorStatusPut, State, Status, Statuses, TaskStatusPut, TopicUsed
from ottla.model.ids import Millis

T0 = Millis(1_000_000)
USUAL = RestartRule()
CONFIG = {"connector.class": "C"}


class Scene:
    """One worker; what it says is read back at once."""

    def __init__(self, rule: RestartRule = USUAL) -> None:
        self.configs, self.statuses = Configs(), Statuses()
        self.duties = Duties("w:1", self.configs, self.statuses, rule, {"C": "1.0"})

    def wanted(self, *records: ConfigRecord, now: Millis = T0) -> list[Effect]:
        for record in records:
            self.configs.replay(record, self.configs.position)
        return self.heard(self.duties.reconcile(now))

    def heard(self, effects: Iterable[Effect]) -> list[Effect]:
        found = list(effects)
        for effect in found:
            if isinstance(effect, Say):
                self.statuses.replay(effect.record)
        return found

    def running(self, config: dict[str, str | None] = CONFIG) -> "Scene":  # type: ignore[assignment]
        self.wanted(*connector("a", config=config))
        self.heard(self.duties.assigned(["a"], 1, T0))
        self.heard(self.duties.began("a", 1))
        return self

    @property
    def state(self) -> State | None:
        found = self.statuses.connector("a")
        return None if found is None else found.state


def connector(name: str, tasks: int = 1, config: object = CONFIG) -> list[ConfigRecord]:
    assert isinstance(config, dict)
    puts: list[ConfigRecord] = [TaskPut(name, number, config) for number in range(tasks)]
    return [ConnectorPut(name, config), *puts, TasksCommitted(name, tasks)]


def jobs(effects: Iterable[Effect]) -> list[str]:
    """Starts and stops, in words."""
    said = {StartJob: "start", StopJob: "stop"}
    return [f"{said[type(each)]} {each.connector}" for each in effects if isinstance(each, StartJob | StopJob)]


def test_what_is_assigned_starts_and_is_said_to_run_when_it_does() -> None:
    scene = Scene()
    assert scene.wanted(*connector("a", 2), *connector("b")) == []
    effects = scene.heard(scene.duties.assigned(["a"], 7, T0))
    assert [each for each in effects if isinstance(each, StartJob)] == [StartJob("a", CONFIG, 2, 7, 1)]
    assert scene.state is State.UNASSIGNED
    running = Status(State.RUNNING, "w:1", 7, None, "1.0")
    assert scene.heard(scene.duties.began("a", 1)) == [
        Say(ConnectorStatusPut("a", running)),
        Say(TaskStatusPut("a", 0, running)),
        Say(TaskStatusPut("a", 1, running)),
    ]
    assert scene.duties.began("a", 1) == []


def test_a_connector_whose_tasks_are_not_written_yet_waits_for_them() -> None:
    scene = Scene()
    scene.duties.assigned(["a"], 1, T0)
    assert jobs(scene.wanted(ConnectorPut("a", CONFIG))) == []
    assert jobs(scene.wanted(TaskPut("a", 0, CONFIG), TasksCommitted("a", 1))) == ["start a"]


def test_pause_and_stop_end_the_job_and_resume_starts_it() -> None:
    scene = Scene().running()
    assert jobs(scene.wanted(TargetStatePut("a", TargetState.PAUSED))) == ["stop a"]
    assert scene.state is State.PAUSED
    assert jobs(scene.wanted(TargetStatePut("a", TargetState.STARTED))) == ["start a"]
    scene.heard(scene.duties.began("a", 2))
    assert jobs(scene.wanted(TasksCommitted("a", 0), TargetStatePut("a", TargetState.STOPPED))) == ["stop a"]
    assert (scene.state, dict(scene.statuses.tasks("a"))) == (State.STOPPED, {})


def test_a_changed_config_starts_the_job_anew() -> None:
    scene = Scene().running()
    assert jobs(scene.wanted(*connector("a", 1, {**CONFIG, "x": "y"}))) == ["stop a", "start a"]
    assert scene.state is State.RESTARTING
    assert scene.duties.failed("a", 1, "late news of the old one", T0) == []


def test_a_deleted_connector_leaves_no_word_behind() -> None:
    scene = Scene().running()
    scene.heard(scene.duties.uses("a", ["t"], T0))
    assert dict(scene.statuses.topics("a")) == {"t": TopicUsed("a", "t", 0, T0)}
    assert jobs(scene.wanted(ConnectorPut("a", None))) == ["stop a"]
    assert (scene.state, dict(scene.statuses.tasks("a")), dict(scene.statuses.topics("a"))) == (None, {}, {})


def test_what_is_taken_away_ends_and_is_unassigned_and_what_is_lost_ends_in_silence() -> None:
    scene = Scene().running()
    assert jobs(scene.heard(scene.duties.assigned([], 2, T0))) == ["stop a"]
    assert scene.state is State.UNASSIGNED
    scene = Scene().running()
    assert scene.duties.lost() == [StopJob("a")]
    assert scene.duties.held == ()


def test_what_failed_is_started_again_after_a_pause_that_doubles() -> None:
    scene = Scene(RestartRule(first_ms=1_000, longest_ms=3_000)).running()
    now = T0
    for epoch, pause_ms in ((1, 1_000), (2, 2_000), (3, 3_000), (4, 3_000)):
        scene.heard(scene.duties.failed("a", epoch, "boom", now))
        status = scene.statuses.connector("a")
        assert status is not None
        assert (status.state, status.restarts, status.next_restart_ms) == (State.FAILED, epoch - 1, now + pause_ms)
        assert f"It is started again in {pause_ms / 1000:g} s" in (status.trace or "")
        assert scene.duties.next_tick_ms() == now + pause_ms
        assert scene.duties.tick(Millis(now + pause_ms - 1)) == []
        now = Millis(now + pause_ms)
        assert jobs(scene.heard(scene.duties.tick(now))) == ["start a"]
        scene.heard(scene.duties.began("a", epoch + 1))


def test_who_ran_for_long_begins_with_the_short_pause_again() -> None:
    scene = Scene(RestartRule(first_ms=1_000, steady_ms=60_000)).running()
    scene.duties.failed("a", 1, "boom", T0)
    scene.duties.tick(Millis(T0 + 1_000))
    later = Millis(T0 + 61_000)
    scene.heard(scene.duties.failed("a", 2, "boom", later))
    assert scene.duties.next_tick_ms() == later + 1_000


def test_a_connector_may_say_that_it_stays_failed() -> None:
    scene = Scene().running({**CONFIG, "connector.auto.restart": "false"})
    scene.heard(scene.duties.failed("a", 1, "boom", T0))
    status = scene.statuses.connector("a")
    assert status is not None
    assert status.next_restart_ms is None
    assert "It stays failed until somebody restarts it" in (status.trace or "")
    assert scene.duties.next_tick_ms() is None


def test_a_restart_that_is_asked_for_does_not_wait_and_of_what_runs_only_if_all_is_meant() -> None:
    scene = Scene().running()
    only_failed = RestartAsked("a", include_tasks=True, only_failed=True)
    assert scene.duties.restart(only_failed, T0) == []
    assert jobs(scene.duties.restart(RestartAsked("a", include_tasks=True, only_failed=False), T0)) == [
        "stop a",
        "start a",
    ]
    scene.duties.failed("a", 2, "boom", T0)
    assert jobs(scene.duties.restart(only_failed, T0)) == ["start a"]
    assert scene.duties.next_tick_ms() is None


def test_what_is_said_of_a_connector_that_nobody_had_when_it_was_deleted_is_taken_back() -> None:
    scene = Scene()
    for task in range(2):
        scene.statuses.replay(TaskStatusPut("a", task, Status(State.RUNNING, "dead:1", 1)))
    scene.statuses.replay(ConnectorStatusPut("a", Status(State.RUNNING, "dead:1", 1)))
    scene.statuses.replay(ConnectorStatusPut("b", Status(State.RUNNING, "alive:1", 1)))
    scene.wanted(*connector("b"))
    assert jobs(scene.heard(scene.duties.sweep())) == []
    assert (list(scene.statuses.connectors), dict(scene.statuses.tasks("a"))) == (["b"], {})
    assert scene.duties.sweep() == []


def test_a_worker_with_nothing_to_run_gets_ready_once_others_run_something() -> None:
    scene = Scene()
    scene.duties.assigned([], 1, T0)
    assert scene.duties.may_inherit() == []
    scene.wanted(TargetStatePut("b", TargetState.STOPPED), *connector("b"))
    assert scene.duties.may_inherit() == [], "what is stopped falls to nobody"
    scene.wanted(*connector("a"))
    assert scene.duties.may_inherit() == [StandBy()]
    assert scene.duties.may_inherit() == [], "what is ready stays so"


def test_what_runs_here_is_ready_already_and_who_does_not_want_to_stand_by_need_not() -> None:
    scene = Scene().running()
    scene.wanted(*connector("b"))
    assert scene.duties.may_inherit() == []
    other = Duties("w:2", scene.configs, scene.statuses, USUAL, {}, stands_by=False)
    other.assigned([], 1, T0)
    assert other.may_inherit() == []


def test_topics_are_written_down_unless_the_worker_is_told_not_to() -> None:
    configs, statuses = Configs(), Statuses()
    assert Duties("w:1", configs, statuses, USUAL, {}).uses("a", ["t"], T0) == [Say(TopicUsed("a", "t", 0, T0))]
    assert Duties("w:1", configs, statuses, USUAL, {}, tracks_topics=False).uses("a", ["t"], T0) == []
