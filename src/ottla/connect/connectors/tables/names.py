"""What columns may be called, and which spellings are one of them."""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import pyarrow as pa

_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Of surrogate pairs: JSON may have them."""


class Misfit(Exception):
    """A record that no row can be made of."""


class Names(NamedTuple):
    """What fields may be called in a kind of table."""

    folds: bool = False
    """Large letters are small ones: `ID` and `id` are one column."""
    empty: bool = True
    """Whether a name may be empty."""


ANY: Final = Names()


class Spelling:
    """Of the columns of one table: that in which each was first seen."""

    __slots__ = ("_known", "_names", "_same")

    def __init__(self, names: Names, known: Iterable[str]) -> None:
        self._names = names
        self._known: dict[str, str] = {}
        self._same: set[tuple[str, ...]] = set()
        """Names of rows that are spelt as they are here."""
        for name in known:
            self.name(name)

    def name(self, name: str) -> str:
        return self._known.setdefault(name.lower(), name) if self._names.folds else name

    def of(self, row: dict[str, Any]) -> dict[str, Any]:
        """Raises Misfit."""
        if self._names != ANY:
            for value in row.values():
                if isinstance(value, dict | list):
                    self._check(value)
        names = tuple(row)
        if names in self._same:
            return row
        self._check_names(names)
        spelt = {self.name(name): value for name, value in row.items()}
        if tuple(spelt) == names:
            self._same.add(names)
        return spelt

    def _check(self, value: Any) -> None:
        """Of what is inside of columns."""
        if isinstance(value, dict):
            self._check_names(tuple(value))
        for each in value.values() if isinstance(value, dict) else value:
            if isinstance(each, dict | list):
                self._check(each)

    def _check_names(self, names: tuple[str, ...]) -> None:
        if self._names.folds and len({name.lower() for name in names}) < len(names):
            raise Misfit("two of its fields are one column: in names of this table large letters are small ones")
        if not self._names.empty and "" in names:
            raise Misfit("one of its fields has an empty name, which no column of this table can have")
        if not "".join(names).isprintable() and _HALVES.search("".join(names)):
            raise Misfit("the name of one of its fields has half a character in it, which no column can have")


def may_be_called(columns: Iterable[pa.Field], names: Names) -> bool:
    """All of them, and what is inside of them. Of columns that no record was refused for."""
    fields = list(columns)
    if names.folds and len({field.name.lower() for field in fields}) < len(fields):
        return False
    if not names.empty and any(not field.name for field in fields):
        return False
    inside = [field.type for field in fields if pa.types.is_nested(field.type)]
    return all(may_be_called([kind.field(at) for at in range(kind.num_fields)], names) for kind in inside)
