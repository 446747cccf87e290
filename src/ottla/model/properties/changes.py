"""Whether a requested config change may be made: topics, brokers, groups, client metrics. Decides; changes nothing.

Each function raises ValueError with the name, the value and what is allowed; UnknownName and OutOfBounds are the kinds
that Kafka has another error code for where client metrics are concerned.
"""

from collections.abc import Mapping
from typing import Final

from ottla.model.properties.broker import CLIENT_METRICS, GROUP, TOPIC
from ottla.model.properties.dynamic import dynamic_problem
from ottla.model.properties.effective import group_values, topic_values
from ottla.model.properties.property import Property, Value, closest
from ottla.model.properties.rules import group_bounds, problems_of
from ottla.model.properties.settings import Settings

_STEPWISE: Final = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
_KEPT: Final = (("local.retention.ms", "retention.ms"), ("local.retention.bytes", "retention.bytes"))
"""How much of a log stays local, and of how much in all."""
_LIKE_THE_WHOLE: Final = -2


class UnknownName(ValueError):
    """A name that no table has."""


def check_topic_config(
    overrides: Mapping[str, str], settings: Settings, existing: Mapping[str, str] | None = None
) -> None:
    """The overrides a topic would have after the change; `existing` are those it has now."""
    _check_names(overrides, TOPIC, "topic")
    values = topic_values(overrides, settings)
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int) and isinstance(most, int)
    if least > most:
        raise ValueError(f"min.compaction.lag.ms: {least} is not allowed: up to max.compaction.lag.ms, which is {most}")
    if values["remote.storage.enable"]:
        _check_tiering(values, settings)
        return
    was_tiered = (existing or {}).get("remote.storage.enable", "").lower() == "true"
    if was_tiered and not values["remote.log.delete.on.disable"]:
        raise ValueError(
            "remote.storage.enable: switching it off deletes remote data; say so with "
            "remote.log.delete.on.disable=true, or keep the data with remote.log.copy.disable=true"
        )


def _check_tiering(values: Mapping[str, Value], settings: Settings) -> None:
    if not settings.get_bool("remote.log.storage.system.enable"):
        raise ValueError("remote.storage.enable: tiered storage is off here (remote.log.storage.system.enable=false)")
    if values["cleanup.policy"] not in ((), ("delete",)):
        raise ValueError("remote.storage.enable: a tiered topic cannot be compacted; set cleanup.policy=delete")
    for local, whole in _KEPT:
        kept, total = _kept(values, local, whole)
        if kept == _LIKE_THE_WHOLE:
            continue
        if total > -1 and not 0 <= kept <= total:
            raise ValueError(f"{local}: {kept} is not allowed: -2, or from 0 to {whole}, which is {total}")
        if values["remote.log.copy.disable"] and kept != total:
            raise ValueError(f"{local}: {kept} has to equal {whole} ({total}) when remote.log.copy.disable is true")


def check_broker_config(configs: Mapping[str, str], settings: Settings, *, per_broker: bool) -> None:
    """Dynamic broker configs after the change: of this broker, or the cluster's default."""
    for name, text in configs.items():
        problem = dynamic_problem(name, text, per_broker=per_broker)
        if problem is not None:
            raise ValueError(problem)
    layered = (
        settings.with_dynamic(settings.dynamic_default, configs)
        if per_broker
        else settings.with_dynamic(configs, settings.dynamic_broker)
    )
    for _, default, low, high in group_bounds():
        # What is out of bounds in a record is brought into them, so it has to be refused here.
        if default in configs and not settings.get_int(low) <= int(configs[default]) <= settings.get_int(high):
            raise ValueError(
                f"{default}: {configs[default]} is not allowed: from {low} ({settings[low]}) to {high} "
                f"({settings[high]})"
            )
    if "log.cleaner.threads" in configs and not int(configs["log.cleaner.threads"]):
        raise ValueError("log.cleaner.threads: 0 is not allowed: a running broker keeps at least 1")
    for name in ("listeners", "listener.security.protocol.map"):
        if name in configs and name not in layered.dynamic_broker:
            raise ValueError(f"{name}: {configs[name]!r} does not fit the listeners and their protocols")
    problems = problems_of(layered)
    if problems:
        raise ValueError(problems[0])


def check_running_broker(changes: Mapping[str, str], now: Settings, *, per_broker: bool) -> None:
    """What only the broker itself can judge, by what it runs with now (Kafka's DynamicThreadPool and DynamicLogConfig).
    Values that cannot be read are left to `check_broker_config`."""
    default, own = now.dynamic_default, now.dynamic_broker
    then = (
        now.with_dynamic(default, {**own, **changes}) if per_broker else now.with_dynamic({**default, **changes}, own)
    )
    for name in _STEPWISE:
        before, after = now.get_int(name), then.get_int(name)
        if after != before and not before // 2 <= after <= before * 2:
            raise ValueError(f"{name}: {after} is not allowed: from half to double of what it is now, {before}")
    before_all, after_all = topic_values({}, now), topic_values({}, then)
    for local, whole in _KEPT:
        kept, total = _kept(after_all, local, whole)
        if (kept, total) == _kept(before_all, local, whole) or kept == _LIKE_THE_WHOLE or total <= -1:
            continue
        if not 0 <= kept <= total:
            raise ValueError(f"log.{local}: {kept} is not allowed: -2, or from 0 to log.{whole}, which is {total}")


def _kept(values: Mapping[str, Value], local: str, whole: str) -> tuple[int, int]:
    kept, total = values[local], values[whole]
    assert isinstance(kept, int) and isinstance(total, int)
    return kept, total


def check_group_config(overrides: Mapping[str, str], settings: Settings) -> None:
    _check_names(overrides, GROUP, "group")
    values = group_values(overrides, settings)
    for name, _, low, high in group_bounds():
        value = values[name]
        assert isinstance(value, int)
        # KAFKA-20337: an assignment interval left alone is not held against the bounds.
        if name.endswith(".assignment.interval.ms") and name not in overrides:
            continue
        if not settings.get_int(low) <= value <= settings.get_int(high):
            raise ValueError(
                f"{name}: {value} is not allowed: from {low} ({settings[low]}) to {high} ({settings[high]})"
            )
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = values[f"{kind}.session.timeout.ms"], values[f"{kind}.heartbeat.interval.ms"]
        assert isinstance(session, int) and isinstance(heartbeat, int)
        if session <= heartbeat:
            raise ValueError(
                f"{kind}.session.timeout.ms: {session} is not allowed: more than {kind}.heartbeat.interval.ms, "
                f"which is {heartbeat}"
            )
    standby, most = values["streams.num.standby.replicas"], settings.get_int("group.streams.max.standby.replicas")
    assert isinstance(standby, int)
    if standby > most:
        raise ValueError(
            f"streams.num.standby.replicas: {standby} is not allowed: up to group.streams.max.standby.replicas, "
            f"which is {most}"
        )


def check_client_metrics_config(configs: Mapping[str, str]) -> None:
    _check_names(configs, CLIENT_METRICS, "client metrics")
    for name, text in configs.items():
        CLIENT_METRICS[name].parse(text)


def _check_names(configs: Mapping[str, str], table: Mapping[str, Property], what: str) -> None:
    for name in configs:
        if name not in table:
            meant = closest(name, table)
            raise UnknownName(f"{name}: not a {what} config" + (f"; did you mean {meant}?" if meant else ""))
