"""Rows of a query as Protobuf messages, in base64: `application/vnd.ksql.v1+protobuf`."""

import base64
from collections.abc import Sequence
from typing import Any

from ottla.sql.formats import serde
from ottla.sql.formats.format import Format
from ottla.sql.formats.protobuf import check, schema_text
from ottla.sql.model import Columns
from ottla.sql.plain import to_bytes

_FORMAT = Format("PROTOBUF_NOSR")


class ProtobufRows:
    """`schema` is the .proto file by which they are read. Raises Refused for columns that no message can have."""

    def __init__(self, columns: Columns) -> None:
        check(_FORMAT, columns, "value")
        self.schema = schema_text(columns, None)
        self._columns = columns
        self._serde = serde(_FORMAT, columns, "value")

    def encoded(self, row: Sequence[Any]) -> str:
        fields = dict(zip((name for name, _ in self._columns), row, strict=True))
        made = to_bytes(fields, _FORMAT, self._columns, "value", self._serde, "")
        return base64.b64encode(made or b"").decode()
