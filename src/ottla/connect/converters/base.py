"""What every converter is: made of a connector's texts, then given columns."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from ottla.connect.data.errors import ConnectException, DataException
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import Schema
from ottla.connect.definitions import LOW, REQUIRED, STRING, ConfigDef, ConfigKey, OneOf, ParsedConfig
from ottla.connect.plugins import PluginType

if TYPE_CHECKING:
    import pyarrow as pa

Role: TypeAlias = Literal["key", "value", "header"]
RawHeaders: TypeAlias = Sequence[tuple[str, bytes | None]]
OwnHeaders: TypeAlias = list[tuple[str, bytes | None]]
"""Of a record that is being written: a converter may add to them."""
Converted: TypeAlias = SchemaAndValue | ConnectException
"""What became of one record's bytes."""
Written: TypeAlias = bytes | ConnectException | None

TYPE: Final = ConfigKey(
    "converter.type",
    STRING,
    REQUIRED,
    LOW,
    "What the converter is used for: keys, values or headers. Whoever makes the converter sets it.",
    OneOf(("key", "value", "header")),
)


RECORDS_FAULT: Final = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, RecursionError,
)  # fmt: skip
"""What a converter of a user's may raise about a record, beside ConnectException. Whatever else it raises, as errors of
the system, is about the world."""


def fault_of(error: Exception) -> ConnectException:
    return error if isinstance(error, ConnectException) else DataException(f"{type(error).__name__}: {error}")


class Converter(ABC):
    """Subclasses say how one record is converted; those that can do better with many take the column themselves."""

    PLUGIN_TYPE: ClassVar = PluginType.CONVERTER
    CONFIG: ClassVar[ConfigDef] = ConfigDef(TYPE)

    def __init__(self, given: Mapping[str, str | None], role: Role) -> None:
        """`given`: the keys behind `key.converter.` or `value.converter.`. Raises ConfigError."""
        self.role: Role = role
        self.config: ParsedConfig = self.CONFIG.parse({**given, "converter.type": role})

    @abstractmethod
    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Raises ConnectException."""

    @abstractmethod
    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        """Raises ConnectException."""

    def to_connect(
        self, topic: str, column: Sequence[bytes | None], headers: Sequence[RawHeaders] | None = None
    ) -> list[Converted]:
        """`headers`: those of the same records, where a schema's id may be found."""
        read = self.read
        out: list[Converted] = []
        for data in column:
            try:
                out.append(read(topic, data))
            except (ConnectException, *RECORDS_FAULT) as error:
                out.append(fault_of(error))
        return out

    def from_connect(
        self, topic: str, column: Sequence[SchemaAndValue], headers: Sequence[OwnHeaders] | None = None
    ) -> list[Written]:
        """`headers`: those of the same records, where a schema's id may be put."""
        write = self.write
        out: list[Written] = []
        for given in column:
            try:
                out.append(write(topic, given))
            except (ConnectException, *RECORDS_FAULT) as error:
                out.append(fault_of(error))
        return out

    def from_columns(self, topic: str, schema: Schema, table: "pa.Table") -> "pa.ChunkedArray | None":
        """The same of the rows of a table (see `spi.Table`), all at once; None from those that cannot. Raises
        ConnectException if any of them cannot be written."""
        return None

    # ---- as a header converter

    def read_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self.read(topic, data)

    def write_header(self, topic: str, key: str, given: SchemaAndValue) -> bytes | None:
        return self.write(topic, given)
