"""What converters by schemas of a registry have in common: which schema bytes have, and where one's own is kept.

A language says what a schema of the registry is in Connect and the other way round; both are made once and remembered.
The registry is Confluent's or ours, by `schema.registry.url`.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from ottla.connect.converters.base import TYPE, Converted, Converter, RawHeaders, Role
from ottla.connect.data.errors import ConnectException, DataException
from ottla.connect.data.record import NOTHING, SchemaAndValue
from ottla.connect.data.schema import Schema
from ottla.connect.definitions import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LOW,
    MEDIUM,
    PASSWORD,
    REQUIRED,
    STRING,
    ConfigDef,
    ConfigError,
    ConfigKey,
    Texts,
)
from ottla.registry.lookup import Registered, Registry, UnknownSchema
from ottla.registry.schemas.base import InvalidSchema, LanguageName, TooComplex
from ottla.serdes.base import SerdeError
from ottla.serdes.schema_ids import HEADER_OF, SchemaId, framed, schema_of

_TOPIC_NAMES: Final = "TopicNameStrategy"
_NAMINGS: Final = (_TOPIC_NAMES, "RecordNameStrategy", "TopicRecordNameStrategy")

REGISTRY_KEYS: Final = (
    TYPE,
    ConfigKey("schema.registry.url", LIST, REQUIRED, HIGH, "Addresses of the registry, each http://host:port."),
    ConfigKey("auto.register.schemas", BOOLEAN, True, MEDIUM, "Whether a schema that is new is registered."),
    ConfigKey("use.latest.version", BOOLEAN, False, LOW, "Whether the subject's latest schema is written with."),
    ConfigKey("basic.auth.credentials.source", STRING, "URL", MEDIUM, "Where name and password are: URL or USER_INFO."),
    ConfigKey("basic.auth.user.info", PASSWORD, "", MEDIUM, "Name and password, with a colon between."),
    ConfigKey("bearer.auth.token", PASSWORD, "", MEDIUM, "A bearer's token."),
    ConfigKey("schema.registry.ssl.truststore.location", STRING, "", LOW, "Certificates to believe, a PEM file."),
    ConfigKey(
        "key.subject.name.strategy",
        CLASS,
        _TOPIC_NAMES,
        MEDIUM,
        "Under which subject schemas of keys are kept: TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy.",
    ),
    ConfigKey(
        "value.subject.name.strategy", CLASS, _TOPIC_NAMES, MEDIUM, "Under which subject schemas of values are kept."
    ),
    ConfigKey("schemas.cache.config", INT, 1000, LOW, "How many schemas are remembered."),
)


class Reading(NamedTuple):
    """How records of one schema become values; `read` is given their bytes and where the payload begins."""

    schema: Schema
    read: Callable[[bytes, int], Any]


class Writing(NamedTuple):
    """How values of one schema become bytes; `head` names the schema of the registry."""

    head: bytes
    write: Callable[[Any], bytes]


class Rendered(NamedTuple):
    """A schema in the language of the registry, and how values are written by it."""

    text: str
    record_name: str | None
    write: Callable[[Any], bytes]


class RegisteredConverter(Converter):
    """Bytes name their schema by an id in front or a GUID in a header."""

    CONFIG = ConfigDef(*REGISTRY_KEYS)
    language: ClassVar[LanguageName]
    faults: ClassVar[tuple[type[Exception], ...]] = (ValueError, LookupError, TypeError, ArithmeticError, EOFError)

    def __init__(self, given: Texts, role: Role, registry: Registry | None = None) -> None:
        super().__init__(given, role)
        self._registry = registry or self._client()
        self._naming = self._named_by()
        self._readings: dict[SchemaId, Reading] = {}
        self._by_prefix: dict[bytes, Reading] = {}
        self._writings: dict[tuple[str, Schema | None], Writing] = {}
        self._expected: tuple[type[Exception], ...] = (
            SerdeError,
            UnknownSchema,
            InvalidSchema,
            TooComplex,
            *self.faults,
        )
        self._most = max(self.config.get_int("schemas.cache.config"), 1)

    def _client(self) -> Registry:
        from ottla.registry.client import RegistryClient  # noqa: PLC0415  it opens connections

        info = self.config.find_password("basic.auth.user.info") or ""
        user, _, password = info.partition(":")
        try:
            return RegistryClient(
                *self.config.get_list("schema.registry.url"),
                user=user,
                password=password,
                token=self.config.find_password("bearer.auth.token") or "",
                ca_file=self.config.get_str("schema.registry.ssl.truststore.location"),
            )
        except ValueError as error:
            raise ConfigError.of("schema.registry.url", self.config["schema.registry.url"], str(error)) from error

    def _named_by(self) -> str:
        if self.role == "header":
            return _TOPIC_NAMES
        key = f"{self.role}.subject.name.strategy"
        simple = self.config.get_str(key).rpartition(".")[2]
        if simple not in _NAMINGS:
            raise ConfigError.of(key, simple, f"one of {', '.join(_NAMINGS)} expected")
        return simple

    # ---- what a language says

    @abstractmethod
    def reading(self, registered: Registered, found: SchemaId) -> Reading:
        """Raises SerdeError, InvalidSchema or ConnectException."""

    @abstractmethod
    def rendered(self, schema: Schema | None, sample: Any) -> Rendered:
        """`sample`: a value, of which a schema is made where there is none. Raises ConnectException."""

    # ---- reading

    def to_connect(
        self, topic: str, column: Sequence[bytes | None], headers: Sequence[RawHeaders] | None = None
    ) -> list[Converted]:
        out: list[Converted] = []
        for index, data in enumerate(column):
            try:
                out.append(self._read(topic, data, headers[index] if headers is not None else ()))
            except ConnectException as error:
                out.append(error)
        return out

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return self._read(topic, data, ())

    def _read(self, topic: str, data: bytes | None, headers: RawHeaders) -> SchemaAndValue:
        if data is None:
            return NOTHING
        reading = None if headers else self._by_prefix.get(data[:5])
        start = 5
        try:
            if reading is None:
                found, start = schema_of(data, headers, "key" if self.role == "key" else "value")
                reading = self._readings.get(found) or self._learnt(found)
                if start == 5 and not any(name in HEADER_OF.values() for name, _ in headers):
                    self._by_prefix[data[:5]] = reading
            return SchemaAndValue(reading.schema, reading.read(data, start))
        except ConnectException:
            raise
        except self._expected as error:
            raise DataException(f"Failed to deserialize data for topic {topic} to {self.language}: {error}") from error

    def _learnt(self, found: SchemaId) -> Reading:
        by_guid, by_id = found.guid, found.id or 0
        registered = self._registry.by_id(by_id) if by_guid is None else self._registry.by_guid(by_guid)
        if registered.language != self.language:
            raise SerdeError(f"schema {found} is of {registered.language}, not of {self.language}")
        if len(self._readings) >= self._most:
            self._readings.clear()
            self._by_prefix.clear()
        made = self._readings[found] = self.reading(registered, found)
        return made

    # ---- writing

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        schema, value = given
        if value is None and (schema is None or schema.optional):
            return None
        writing = self._writings.get((topic, schema)) if schema is not None else None
        try:
            if writing is None:
                writing = self._begun(topic, schema, value)
            return writing.head + writing.write(value)
        except ConnectException:
            raise
        except self._expected as error:
            raise DataException(f"Failed to serialize {self.language} data from topic {topic} : {error}") from error

    def _begun(self, topic: str, schema: Schema | None, value: Any) -> Writing:
        rendered = self.rendered(schema, value)
        subject = self._subject(topic, rendered.record_name)
        if self.config.get_bool("use.latest.version"):
            registered = self._registry.latest(subject)
        else:
            auto = self.config.get_bool("auto.register.schemas")
            ask = self._registry.register if auto else self._registry.find
            registered = ask(subject, self.language, rendered.text, ())
        if len(self._writings) >= self._most:
            self._writings.clear()
        made = Writing(framed(registered.id, b""), rendered.write)
        if schema is not None:
            self._writings[topic, schema] = made
        return made

    def _subject(self, topic: str, record_name: str | None) -> str:
        if record_name is None or self._naming == _TOPIC_NAMES:
            return f"{topic}-{'key' if self.role == 'key' else 'value'}"
        return record_name if self._naming == "RecordNameStrategy" else f"{topic}-{record_name}"
