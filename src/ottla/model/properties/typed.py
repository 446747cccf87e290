"""Values by name, each got as what it is declared to be."""

from collections.abc import Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class TypedValues(Generic[V]):
    """A wrong getter is a bug: it raises TypeError. Never with the value, which may be a secret."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, V]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> V:
        """Raises KeyError for a name that is not declared."""
        return self._values[name]

    def get_bool(self, name: str) -> bool:
        value = self._values[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} is no boolean")
        return value

    def get_int(self, name: str) -> int:
        value = self._values[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is no whole number")
        return value

    def find_int(self, name: str) -> int | None:
        return None if self._values[name] is None else self.get_int(name)

    def get_float(self, name: str) -> float:
        value = self._values[name]
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError(f"{name} is no number")
        return float(value)

    def get_str(self, name: str) -> str:
        value = self._values[name]
        if not isinstance(value, str):
            raise TypeError(f"{name} is no text")
        return value

    def find_str(self, name: str) -> str | None:
        return None if self._values[name] is None else self.get_str(name)

    def get_list(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is no list")
        return value
