"""A serde of rows: what all formats of SQL have in common.

A value is a struct of its columns. A key is the one column it has, or a struct of several. *Unwrapped*, a single column
lies bare in the bytes, and a row in which it is null has no bytes.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ottla.serdes.base import ColumnSerde
from ottla.serdes.types import STRING, Type

Columns: TypeAlias = tuple[tuple[str, Type], ...]
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]


def row_type(columns: Columns, part: str) -> Type:
    """Of the keys or values of a source."""
    if part == "key" and len(columns) < 2:
        return columns[0][1] if columns else STRING
    return Type("struct", fields=columns)


class RowSerde(ColumnSerde[Any]):
    """`bare`: whether the value itself is the column, as a single key column is; `wrapped`: whether the bytes hold an
    object, list or message with the columns in it."""

    name = "row"

    def __init__(self, columns: Columns, part: str, wrapped: bool) -> None:
        self.columns = columns
        self.part = part
        self.wrapped = wrapped or len(columns) != 1
        self.bare = part == "key" and len(columns) == 1
        self.type = row_type(columns, part)

    @property
    def content(self) -> Type:
        """Of what lies in the bytes."""
        return Type("struct", fields=self.columns) if self.wrapped else self.columns[0][1]

    @property
    def has_columns(self) -> bool:
        return True

    @abstractmethod
    def read_content(self, data: bytes, headers: Headers) -> Any:
        """Raises SerdeError."""

    @abstractmethod
    def write_content(self, content: Any, topic: str) -> bytes:
        """Raises SerdeError."""

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(name for name, _ in self.columns)})"

    # ---- what serdes do

    def serialize(self, value: Any) -> bytes | None:
        return None if self._content(value) is None else self.encode(value)

    def encode_for(self, value: Any, topic: str, headers: list[tuple[str, bytes | None]]) -> bytes:
        content = self._content(value)
        made: Any = None if content is None else self.write_content(content, topic)
        found: bytes = made  # no bytes for a bare null
        return found

    def decode_from(self, data: bytes, topic: str, headers: list[tuple[str, bytes | None]]) -> Any:
        return self.read(data, headers, for_columns=False)

    def read(self, data: bytes, headers: Headers, *, for_columns: bool) -> Any:
        content = self.read_content(data, headers)
        value = self._value(content)
        convert = _to_column(self.type) if for_columns else None
        return value if convert is None else convert(value)

    def _content(self, value: Any) -> Any:
        if value is None or self.wrapped == (not self.bare):
            return value
        name = self.columns[0][0]
        return {name: value} if self.wrapped else value.get(name)

    def _value(self, content: Any) -> Any:
        if self.wrapped == (not self.bare):
            return content
        name = self.columns[0][0]
        if not self.wrapped:
            return {name: content}
        return None if content is None else content.get(name)


def _to_column(kind: Type) -> Callable[[Any], Any] | None:
    """Arrow is for Spark: a server without it has no need of its 40 MB."""
    from ottla.serdes.arrow import to_column  # noqa: PLC0415

    return to_column(kind)
