"""The name in a certificate as Java spells it, X500Principal.getName(): principals and ACLs hold such texts.

RFC 2253, last element first, with Java's own habits: a type without one of nine keywords is written as its number, and
its value as the hexadecimal bytes of its DER; `#` and `=` are escaped wherever they stand; and what stands in a string
is taken for UTF-8, whatever the string's type says.
"""

from typing import Final

from ottla.security.tls import der

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_STRINGS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E))
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"


def java_name(name: bytes) -> str:
    """Of the DER of a Name. Raises Malformed."""
    elements = [_element(each.expect(der.SET)) for each in der.only(name).expect(der.SEQUENCE).parts()]
    return ",".join(reversed(elements))


def _element(found: der.Value) -> str:
    """Most have one attribute; several are joined in the order in which they are written."""
    return "+".join(_attribute(each.expect(der.SEQUENCE)) for each in found.parts())


def _attribute(found: der.Value) -> str:
    parts = found.parts()
    if len(parts) != 2:
        raise der.Malformed("an attribute of a name is not a type and a value")
    number = der.object_id(parts[0].expect(der.OBJECT_ID).body)
    keyword, value = _KEYWORDS.get(number), parts[1]
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or number}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.body.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text)
    inner = escaped.strip(_BLANKS)
    if not inner:
        return "".join(f"\\{char}" for char in escaped)
    lead = len(escaped) - len(escaped.lstrip(_BLANKS))
    trail = len(escaped) - lead - len(inner)
    before = "".join(f"\\{char}" for char in escaped[:lead])
    after = "".join(f"\\{char}" for char in escaped[len(escaped) - trail :]) if trail else ""
    return f"{before}{inner}{after}"
