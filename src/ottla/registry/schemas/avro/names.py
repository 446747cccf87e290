"""Which names Avro takes: letters, digits and underscores, letters being those of any script (Java's UTF_VALIDATOR)."""

from ottla.registry.schemas.avro.tree import Name
from ottla.registry.schemas.base import InvalidSchema


def checked_name(name: str) -> None:
    if fault := _fault(name):
        raise InvalidSchema(fault)


def checked_full_name(name: Name) -> None:
    for part in name.space.split(".") if name.space else ():
        if fault := _fault(part):
            raise InvalidSchema(f'Namespace part "{part}" is invalid: {fault}')


def _fault(name: str) -> str | None:
    if name.isascii() and name.isidentifier():
        return None
    if not name:
        return "Empty name"
    if not (_is_letter(name[0]) or name[0] == "_"):
        return f"Illegal initial character: {name}"
    if not all(_is_letter(each) or each.isdecimal() or each == "_" for each in name):
        return f"Illegal character in: {name}"
    return None


def _is_letter(character: str) -> bool:
    """Java looks at UTF-16 units: what needs two of them is no letter to it."""
    return character.isalpha() and ord(character) <= 0xFFFF
