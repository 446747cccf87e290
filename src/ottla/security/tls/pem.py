"""PEM: keys and certificates as text, from a file or written into a setting.

A setting may hold them in one line, blanks where a file has line ends: what is between the dashes is put into lines
again, because OpenSSL reads no other.
"""

import base64
import binascii
import re
from typing import Final, NamedTuple

CERTIFICATES: Final = frozenset(("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"))
ENCRYPTED: Final = "ENCRYPTED PRIVATE KEY"
_BLOCK: Final = r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END ([A-Z0-9 ]+)-----"
_LINE: Final = 64


class Block(NamedTuple):
    label: str
    text: str
    """With its dashes, in lines."""
    data: bytes
    """What the text says; empty for a key that is encrypted the old way, inside the text."""

    @property
    def is_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        return self.label == ENCRYPTED or "ENCRYPTED" in self.text.partition("\n\n")[0]


def blocks(text: str) -> list[Block]:
    """Raises ValueError for what lies between dashes and is no base64."""
    found = []
    for match in re.finditer(_BLOCK, text, re.DOTALL):
        label, body, end = match[1], match[2], match[3]
        if label != end:
            raise ValueError(f"-----BEGIN {label}----- is followed by -----END {end}-----")
        if ":" in body:  # RFC 1421's header lines, of keys that openssl encrypted the old way
            found.append(Block(label, f"-----BEGIN {label}-----\n{body.strip()}\n-----END {label}-----\n", b""))
            continue
        try:
            data = base64.b64decode("".join(body.split()), validate=True)
        except binascii.Error as error:
            raise ValueError(f"what stands under -----BEGIN {label}----- is no base64") from error
        found.append(Block(label, written(label, data), data))
    return found


def written(label: str, data: bytes) -> str:
    text = base64.b64encode(data).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))
