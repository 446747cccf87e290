"""Processors of users."""

from typing import Any

from ottla.streams.record import Record
from ottla.streams.topology.operations import UserProcessor
from ottla.streams.topology.processor import Processor, ProcessorContext


class _SameKey:
    """The context of a processor that must not change keys (process_values)."""

    def __init__(self, context: ProcessorContext) -> None:
        self._context = context
        self.key: Any = None
        self.inside = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def forward(self, record: Record, child: str | None = None) -> None:
        if self.inside and record.key is not self.key and record.key != self.key:
            raise ValueError(
                f"process_values was given the key {self.key!r} and forwards {record.key!r}: use process to change keys"
            )
        self._context.forward(record, child)


class FixedKey(Processor):
    """A processor whose output has the key of its input: whoever comes next relies on the partition."""

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self._context: _SameKey

    def init(self, context: ProcessorContext) -> None:
        self._context = _SameKey(context)
        self._processor.init(self._context)

    def process(self, record: Record) -> None:
        context = self._context
        context.key, context.inside = record.key, True
        try:
            self._processor.process(record)
        finally:
            context.inside = False

    def close(self) -> None:
        self._processor.close()


def user_processor(operation: UserProcessor) -> Processor:
    made = operation.supplier()
    if not isinstance(made, Processor):
        raise TypeError(f"the supplier {operation.supplier!r} gave {made!r}, which is no Processor")
    return FixedKey(made) if operation.fixed_key else made
