"""Which languages there are, and where. Each is loaded, with its library, by the first schema that is written in it."""

from collections.abc import Callable
from importlib import import_module
from typing import Final

from ottla.model.extras import missing
from ottla.registry.machine.parsing import Languages
from ottla.registry.schemas.base import InvalidSchema, Language

_ROOMS: Final = {
    "AVRO": ("ottla.registry.schemas.avro", "Avro"),
    "JSON": ("ottla.registry.schemas.json_schema", "JsonSchemaLanguage"),
    "PROTOBUF": ("ottla.registry.schemas.protobuf", "Protobuf"),
}


def _from(room: str, name: str) -> Callable[[], Language]:
    def load() -> Language:
        try:
            language: Language = getattr(import_module(room), name)()
        except ModuleNotFoundError as error:  # no schema of this language is valid here
            raise InvalidSchema(missing(error)) from error
        return language

    return load


LANGUAGES: Final[Languages] = {language: _from(*room) for language, room in _ROOMS.items()}
