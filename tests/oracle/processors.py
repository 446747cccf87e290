"""The processors that a case can name; java/Processors.java has the same ones."""

from collections.abc import Callable
from typing import Any

from ottla.streams.record import Record
from ottla.streams.topology.processor import (
    Cancellable,
    FixedKeyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    ValueTransformerWithKey,
)
from ottla.streams.topology.stores import ValueTimestampHeaders, VersionedRecord
from tests.oracle.functions import text

Spec = dict[str, Any]


class _WithContext(Processor):
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.context: ProcessorContext
        self.store: Any = None

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        if "store" in self.spec:
            self.store = context.state_store(self.spec["store"])


class PutGet(_WithContext):
    """Puts the value under the key and tells what was there."""

    def process(self, record: Record) -> None:
        if record.key is None:
            self.context.forward(record.with_value("no key"))
            return
        old = self.store.delete(record.key) if record.value is None else self.store.get(record.key)
        if record.value is not None:
            self.store.put(record.key, record.value)
        self.context.forward(record.with_value(f"{text(old)}->{text(record.value)}"))


class PutIfAbsent(_WithContext):
    def process(self, record: Record) -> None:
        if record.key is not None and self.store.put_if_absent(record.key, record.value) is None:
            self.context.forward(record)


class Range(_WithContext):
    """Puts, then forwards what lies between two keys."""

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.store.put(record.key, record.value)
        look = self.store.reverse_range if self.spec["reverse"] else self.store.range
        for key, value in look(self.spec["from"], self.spec["to"]):
            self.context.forward(record.with_key(key).with_value(value))


class Window(_WithContext):
    """Puts into a window store at the record's time, then forwards what is around that time."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        self.store.put(record.key, record.value, record.timestamp)
        first = max(0, record.timestamp - self.spec["before"])
        last = record.timestamp + self.spec["after"]
        back = "backward_" if self.spec.get("backward") else ""
        if self.spec["every"] or "keys" in self.spec:
            if "keys" in self.spec:
                entries = getattr(self.store, f"{back}fetch_keys")(*self.spec["keys"], first, last)
            else:
                entries = getattr(self.store, f"{back}fetch_all")(first, last)
            for windowed, value in entries:
                self.context.forward(record.with_key(windowed.key).with_value(text(windowed) + text(value)))
            return
        for start, value in getattr(self.store, f"{back}fetch_range")(record.key, first, last):
            self.context.forward(record.with_value(f"{start}:{text(value)}"))


class KeepHeaders(_WithContext):
    """Puts values with their headers and tells what was there."""

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if key is None:
            return
        now = None if value is None else ValueTimestampHeaders(value, timestamp, headers)
        if self.spec["windows"]:
            before = self.store.fetch(key, timestamp)
            self.store.put(key, now, timestamp)
        else:
            before = self.store.delete(key) if now is None else self.store.get(key)
            if now is not None:
                self.store.put(key, now)
        self.context.forward(record.with_value(self._told(before)))

    def _told(self, found: ValueTimestampHeaders | None) -> str:
        if found is None:
            return "null"
        headers = "".join(f" {name}={(data or b'').decode()}" for name, data in found.headers)
        return f"{text(found.value)}@{found.timestamp}{headers}"


class Versions(_WithContext):
    """Puts a version, or deletes, or only looks; then tells what is valid now and around the record's time."""

    def process(self, record: Record) -> None:
        key, value, timestamp, _ = record
        if key is None:
            return
        told = ""
        if self.spec["puts"]:
            if value is None and self.spec["deletes"]:
                told = _version(self.store.delete(key, timestamp))
            else:
                told = str(self.store.put(key, value, timestamp))
        told += f" now {_version(self.store.get(key))}"
        for look in self.spec["looks"]:
            time = max(0, timestamp + look)
            told += f" {time}={_version(self.store.get(key, time))}"
        self.context.forward(record.with_value(told))


def _version(found: VersionedRecord | None) -> str:
    return "null" if found is None else f"{text(found.value)}@{found.timestamp}"


class AddHeader(_WithContext):
    """Adds a header; the value tells where the record comes from."""

    def process(self, record: Record) -> None:
        where = self.context.record_metadata()
        origin = f"{where.topic}-{where.partition}@{where.offset}" if where else "nowhere"
        headers = (*record.headers, ("n", str(len(record.headers)).encode()))
        self.context.forward(record.with_headers(headers).with_value(f"{origin} {text(record.value)}"))


class Times(_WithContext):
    def process(self, record: Record) -> None:
        clocks = (record.timestamp, self.context.current_stream_time_ms(), self.context.current_system_time_ms())
        self.context.forward(record.with_value(" ".join(map(str, clocks))).with_timestamp(record.timestamp + 1))


class Child(_WithContext):
    """Forwards to one child by name, depending on the value; without a value to all."""

    def process(self, record: Record) -> None:
        if record.value is None:
            self.context.forward(record)
        else:
            self.context.forward(record, self.spec["long" if len(text(record.value)) > 2 else "short"])


class Clock(_WithContext):
    """Remembers the last value per key, and forwards all of them when its time comes."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.left = self.spec.get("times", 1000)
        kind = PunctuationType.STREAM_TIME if self.spec["type"] == "stream" else PunctuationType.WALL_CLOCK_TIME
        self.schedule: Cancellable = context.schedule(
            self.spec["interval"], kind, self.punctuate, start_ms=self.spec.get("start")
        )

    def punctuate(self, time: int) -> None:
        self.left -= 1
        if self.left <= 0:
            self.schedule.cancel()
        self.context.forward(Record("tick", str(time), time))
        for key, value in self.store.all():
            self.context.forward(Record(key, f"{text(value)}@{time}", time))
        if self.spec["clear"]:
            for key, _ in list(self.store.all()):
                self.store.delete(key)

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.store.put(record.key, record.value)


class Count(_WithContext, FixedKeyProcessor):
    def process(self, record: Record) -> None:
        if record.key is None:
            return
        now = str(int(self.store.get(record.key) or "0") + 1)
        self.store.put(record.key, now)
        self.context.forward(record.with_value(f"{text(record.value)}#{now}"))


class FixedTimes(_WithContext, FixedKeyProcessor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(f"{record.timestamp} {self.context.current_stream_time_ms()}"))


_PROCESSORS: dict[str, type[_WithContext]] = {
    "put-get": PutGet, "put-if-absent": PutIfAbsent, "range": Range, "window": Window, "headers": AddHeader,
    "versions": Versions, "keep-headers": KeepHeaders, "times": Times, "child": Child, "clock": Clock,
}  # fmt: skip
_FIXED_KEY_PROCESSORS: dict[str, type[_WithContext]] = {"count": Count, "times": FixedTimes}


def processor(spec: Spec, *, fixed_key: bool = False) -> Callable[[], Any]:
    """A supplier of the processor that the description asks for."""
    kind = (_FIXED_KEY_PROCESSORS if fixed_key else _PROCESSORS)[spec["kind"]]
    return lambda: kind(spec)


class Marked(ValueTransformerWithKey):
    """Tells key and value; of deleted rows too, if they are to be `kept`."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def transform(self, key: Any, value: Any) -> Any:
        if value is None and not self.spec.get("kept"):
            return None
        return f"{text(key)}<{text(value)}>"


class Changed(Marked):
    """How often a row has changed, by a store."""

    def init(self, context: ProcessorContext) -> None:
        self.store = context.state_store(self.spec["store"])

    def transform(self, key: Any, value: Any) -> Any:
        now = str(int(self.store.get(key) or "0") + 1)
        self.store.put(key, now)
        return None if value is None else f"{text(value)}#{now}"


def transformer(spec: Spec) -> Callable[[], ValueTransformerWithKey]:
    kind = {"marked": Marked, "changed": Changed}[spec["kind"]]
    return lambda: kind(spec)
