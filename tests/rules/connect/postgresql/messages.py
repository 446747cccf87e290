"""Messages of pgoutput, as a server writes them: the other direction of the decoder."""

import struct
from collections.abc import Sequence

from ottla.connect.connectors.postgresql.pgoutput import EPOCH_MICROS, Relation, Text, Unchanged


def row(columns: Sequence[Text]) -> bytes:
    out = struct.pack(">H", len(columns))
    for each in columns:
        if each is None:
            out += b"n"
        elif isinstance(each, Unchanged):
            out += b"u"
        else:
            data = each.encode()
            out += b"t" + struct.pack(">I", len(data)) + data
    return out


def begin(commit_lsn: int, xid: int, micros: int = EPOCH_MICROS) -> bytes:
    return b"B" + struct.pack(">QqI", commit_lsn, micros - EPOCH_MICROS, xid)


def commit(commit_lsn: int, end_lsn: int, micros: int = EPOCH_MICROS) -> bytes:
    return b"C" + struct.pack(">BQQq", 0, commit_lsn, end_lsn, micros - EPOCH_MICROS)


def relation(given: Relation) -> bytes:
    out = b"R" + struct.pack(">I", given.oid) + given.schema.encode() + b"\0" + given.table.encode() + b"\0"
    out += given.identity.encode() + struct.pack(">H", len(given.columns))
    for name, type_oid, modifier, is_key in given.columns:
        out += bytes([is_key]) + name.encode() + b"\0" + struct.pack(">Ii", type_oid, modifier)
    return out


def insert(oid: int, new: Sequence[Text]) -> bytes:
    return b"I" + struct.pack(">I", oid) + b"N" + row(new)


def update(oid: int, new: Sequence[Text], old: Sequence[Text] | None = None, *, is_whole: bool = False) -> bytes:
    before = b"" if old is None else (b"O" if is_whole else b"K") + row(old)
    return b"U" + struct.pack(">I", oid) + before + b"N" + row(new)


def delete(oid: int, old: Sequence[Text], *, is_whole: bool = False) -> bytes:
    return b"D" + struct.pack(">I", oid) + (b"O" if is_whole else b"K") + row(old)


def truncate(*oids: int, flags: int = 0) -> bytes:
    return b"T" + struct.pack(">IB", len(oids), flags) + b"".join(struct.pack(">I", each) for each in oids)


def message(prefix: str, content: bytes) -> bytes:
    return b"M" + struct.pack(">BQ", 1, 7) + prefix.encode() + b"\0" + struct.pack(">I", len(content)) + content
