"""What a source says of the format of its keys or values."""

from dataclasses import dataclass
from typing import Final

_DELIMITERS: Final = {"TAB": "\t", "SPACE": " "}


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    delimiter: str | None = None
    """Of DELIMITED: a character, TAB or SPACE; a comma if none is said."""
    wrap: bool | None = None
    """WRAP_SINGLE_VALUE: whether a single column is a field of an object; None: as the format has it."""
    schema_full_name: str | None = None
    """Of the Avro record."""
    schema_id: int | None = None
    """Of the schema that is written, and that columns are taken from."""
    nullable_representation: str | None = None
    """Of Protobuf: how a null is told from a default. OPTIONAL or WRAPPER."""

    @property
    def separator(self) -> str:
        return "," if self.delimiter is None else _DELIMITERS.get(self.delimiter.upper(), self.delimiter)
