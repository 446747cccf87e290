"""Which languages there are, and where. Each is loaded, with its library, by the first schema that is written in it."""

from collections.abc import Callable
from importlib import import_module
from typing import Final

from ottla.registry.machine.parsing import Languages
from ottla.registry.schemas.base import Language

_ROOMS: Final = {
    "AVRO": "ottla.registry.schemas.avro",
    "JSON": "ottla.registry.schemas.json_schema",
    "PROTOBUF": "ottla.registry.schemas.protobuf",
}


def _from(room: str) -> Callable[[], Language]:
    def load() -> Language:
        language: Language = import_module(room).LANGUAGE
        return language

    return load


LANGUAGES: Final[Languages] = {name: _from(room) for name, room in _ROOMS.items()}
