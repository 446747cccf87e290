"""Transformers of users: what makes a table's values by transform_values."""

from collections.abc import Callable
from typing import Any, NoReturn

from ottla.streams.record import Record
from ottla.streams.topology.processor import ProcessorContext, ValueTransformerWithKey


class _NothingForwarded:
    """The context of a transformer: a table's row has one value, which is what `transform` returns."""

    def __init__(self, context: ProcessorContext) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def forward(self, record: Record, child: str | None = None) -> NoReturn:
        raise ValueError(f"a transformer of a table's values must not forward records ({record.key!r}): return a value")


def transformer(supplier: Callable[[], ValueTransformerWithKey], context: ProcessorContext) -> ValueTransformerWithKey:
    made = supplier()
    if not isinstance(made, ValueTransformerWithKey):
        raise TypeError(f"the supplier {supplier!r} gave {made!r}, which is no ValueTransformerWithKey")
    made.init(_NothingForwarded(context))
    return made
