"""What a command of the REST API means, as records of connect-configs."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ottla.connect.config_records import (
    ConfigRecord,
    ConnectorPut,
    RestartAsked,
    SessionKeyPut,
    TargetState,
    TargetStatePut,
    TaskPut,
    TasksCommitted,
    Texts,
)
from ottla.connect.configs import Configs
from ottla.connect.herder import (
    CheckStopped,
    Command,
    CreateConnector,
    DeleteConnector,
    Done,
    Herder,
    PutConnector,
    PutSessionKey,
    Refusal,
    RestartConnector,
    RestartPlan,
    RestartTask,
    SetTargetState,
)
from ottla.connect.statuses import ConnectorStatusPut, State, Status, Statuses, TaskStatusPut
from ottla.model.core import Decision
from ottla.model.ids import Millis

NOW = Millis(1_000)
STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED


def tasks_of(config: Texts) -> tuple[Texts, ...]:
    return ({**config, "task.class": "T"},) * int(config.get("tasks.max") or "1")


class Scene:
    """A herder whose records are replayed as soon as it gives them."""

    def __init__(self) -> None:
        self.configs, self.statuses = Configs(), Statuses()
        self.herder = Herder(self.configs, self.statuses, tasks_of)
        self.log: list[ConfigRecord] = []

    def do(self, command: Command) -> Decision[object, ConfigRecord]:
        decision = self.herder.decide(command, NOW)
        self.replay(decision.records)
        return decision

    def replay(self, records: Sequence[ConfigRecord]) -> None:
        for record in records:
            self.configs.replay(record, len(self.log))
            self.log.append(record)


A = {"connector.class": "C", "name": "a"}
TASK = {**A, "task.class": "T"}


def test_a_new_connector_is_its_config_its_tasks_and_their_commit() -> None:
    scene = Scene()
    records = (ConnectorPut("a", A), TaskPut("a", 0, TASK), TasksCommitted("a", 1))
    assert scene.do(CreateConnector("a", A)) == Decision(Done(created=True), records)
    found = scene.configs.connectors["a"]
    assert (found.state, found.tasks, found.task_count, found.inconsistent) == (STARTED, (TASK,), 1, False)


def test_an_initial_state_is_written_before_the_config_and_a_stopped_one_has_no_tasks() -> None:
    scene = Scene()
    records = (TargetStatePut("a", STOPPED), ConnectorPut("a", A), TasksCommitted("a", 0))
    assert scene.do(CreateConnector("a", A, STOPPED)) == Decision(Done(created=True), records)
    assert scene.configs.connectors["a"].state is STOPPED


def test_a_name_that_is_taken_is_refused_and_nothing_is_written() -> None:
    scene = Scene()
    scene.do(CreateConnector("a", A))
    assert scene.do(CreateConnector("a", A)) == Decision(Refusal(409, "Connector a already exists"))


def test_a_changed_config_writes_its_tasks_anew_and_the_same_one_does_not() -> None:
    scene = Scene()
    scene.do(CreateConnector("a", A))
    assert scene.do(PutConnector("a", A)) == Decision(Done(), (ConnectorPut("a", A),))
    other = {**A, "tasks.max": "2"}
    task = {**other, "task.class": "T"}
    records = (ConnectorPut("a", other), TaskPut("a", 0, task), TaskPut("a", 1, task), TasksCommitted("a", 2))
    assert scene.do(PutConnector("a", other)) == Decision(Done(), records)


def test_what_is_not_there_is_refused_in_javas_words() -> None:
    herder = Scene().herder
    said: dict[Command, str] = {
        DeleteConnector("x"): "Connector x not found",
        SetTargetState("x", PAUSED): "Unknown connector x",
        RestartConnector("x"): "Unknown connector: x",
        RestartConnector("x", include_tasks=True): "Unknown connector: x",
        RestartTask("x", 0): "Unknown connector: x",
        CheckStopped("x"): "Connector x not found",
    }
    for command, message in said.items():
        assert herder.decide(command, NOW) == Decision(Refusal(404, message))


def test_stop_takes_the_tasks_away_and_resume_writes_them_again() -> None:
    scene = Scene()
    scene.do(CreateConnector("a", A))
    assert scene.do(SetTargetState("a", PAUSED)).records == (TargetStatePut("a", PAUSED),)
    assert scene.do(SetTargetState("a", STOPPED)).records == (TasksCommitted("a", 0), TargetStatePut("a", STOPPED))
    again = (TargetStatePut("a", STARTED), TaskPut("a", 0, TASK), TasksCommitted("a", 1))
    assert scene.do(SetTargetState("a", STARTED)).records == again


def test_offsets_are_for_stopped_connectors_only() -> None:
    scene = Scene()
    scene.do(CreateConnector("a", A))
    refusal = scene.do(CheckStopped("a")).reply
    assert isinstance(refusal, Refusal)
    assert (refusal.status, "'/connectors/a/stop' endpoint" in refusal.message) == (400, True)
    scene.do(SetTargetState("a", STOPPED))
    assert scene.do(CheckStopped("a")) == Decision(Done())


def test_delete_leaves_tombstones_of_config_and_target_state() -> None:
    scene = Scene()
    scene.do(CreateConnector("a", A, PAUSED))
    assert scene.do(DeleteConnector("a")).records == (ConnectorPut("a", None), TargetStatePut("a", None))
    assert dict(scene.configs.connectors) == {}
    scene.do(CreateConnector("a", A))
    assert scene.configs.connectors["a"].state is STARTED


def test_kip_745_a_restart_with_tasks_tells_what_will_be() -> None:
    scene = Scene()
    scene.do(CreateConnector("a", A))
    assert scene.do(RestartConnector("a")) == Decision(
        Done(), (RestartAsked("a", include_tasks=False, only_failed=False),)
    )
    unknown: Decision[object, ConfigRecord] = Decision(Refusal(404, "Status for connector a not found"))
    assert scene.do(RestartConnector("a", only_failed=True)) == unknown
    running, failed = Status(State.RUNNING, "w", 1), Status(State.FAILED, "w", 1, "boom")
    scene.statuses.replay(ConnectorStatusPut("a", running))
    scene.statuses.replay(TaskStatusPut("a", 0, failed))
    plan = scene.do(RestartConnector("a", include_tasks=True, only_failed=True)).reply
    assert plan == RestartPlan(running, {0: Status(State.RESTARTING, "w", 1, "boom")})


def test_a_task_that_the_connector_does_not_have_is_unknown() -> None:
    scene = Scene()
    scene.do(CreateConnector("a", A))
    assert scene.do(RestartTask("a", 1)) == Decision(Refusal(404, "Unknown task: a-1"))


def test_tasks_lost_to_compaction_or_a_dead_leader_are_written_again() -> None:
    scene = Scene()
    assert scene.herder.tick(NOW) == Decision(Done())
    scene.replay([ConnectorPut("a", A)])  # its leader died before the tasks
    again = (TaskPut("a", 0, TASK), TasksCommitted("a", 1))
    assert scene.herder.tick(NOW).records == again
    scene.replay([TasksCommitted("a", 2)])  # compaction took the tasks of this round
    assert scene.configs.connectors["a"].inconsistent
    assert scene.herder.tick(NOW).records == again
    scene.replay(again)
    assert scene.herder.tick(NOW) == Decision(Done())


def test_the_session_key_is_renewed_when_it_is_old() -> None:
    scene = Scene()
    assert scene.herder.needs_session_key(NOW)
    assert scene.do(PutSessionKey(b"k", "HmacSHA256")).records == (SessionKeyPut(b"k", "HmacSHA256", NOW),)
    assert not scene.herder.needs_session_key(Millis(NOW + 3_599_999))
    assert scene.herder.needs_session_key(Millis(NOW + 3_600_000))


names = st.sampled_from("ab")
configs = st.builds(lambda n, x: {"tasks.max": str(n), "x": x}, st.integers(1, 3), st.sampled_from("xyz"))
commands: st.SearchStrategy[Command] = st.one_of(
    st.builds(CreateConnector, names, configs, st.none() | st.sampled_from(TargetState)),
    st.builds(PutConnector, names, configs),
    st.builds(DeleteConnector, names),
    st.builds(SetTargetState, names, st.sampled_from(TargetState)),
    st.builds(RestartConnector, names, st.booleans(), st.booleans()),
    st.builds(RestartTask, names, st.integers(0, 2)),
)


def rebuilt(log: Sequence[ConfigRecord]) -> Configs:
    found = Configs()
    for offset, record in enumerate(log):
        found.replay(record, offset)
    return found


def seen(found: Configs) -> object:
    return dict(found.connectors), found.position, found.session_key, dict(found.pending_fencing)


@given(st.lists(commands, max_size=12))
def test_replay_alone_rebuilds_what_is_wanted_and_a_refusal_changes_nothing(script: list[Command]) -> None:
    scene = Scene()
    for command in script:
        before = seen(scene.configs)
        decision = scene.herder.decide(command, NOW)
        assert seen(scene.configs) == before
        if isinstance(decision.reply, Refusal):
            assert decision.records == ()
        scene.replay(decision.records)
        assert scene.herder.tick(NOW).records == ()  # whole commands leave nothing to be put in order
    assert seen(rebuilt(scene.log)) == seen(scene.configs)


@given(st.lists(commands, max_size=8), st.data())
def test_after_any_prefix_of_the_log_a_new_leader_puts_it_in_order(script: list[Command], data: st.DataObject) -> None:
    scene = Scene()
    for command in script:
        scene.do(command)
    cut = data.draw(st.integers(0, len(scene.log)))
    again = Scene()
    again.replay(scene.log[:cut])
    again.replay(again.herder.tick(NOW).records)
    assert again.herder.tick(NOW).records == ()
    for connector in again.configs.connectors.values():
        assert not connector.inconsistent
        assert connector.state is not STARTED or len(connector.tasks) == connector.task_count > 0
