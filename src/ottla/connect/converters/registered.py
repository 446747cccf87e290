"""What converters by schemas of a registry have in common: which schema bytes have, and where one's own is kept.

A language says what a schema of the registry is in Connect and the other way round; both are made once and remembered.
The registry is Confluent's or ours, by `schema.registry.url`. Values are always written by the schema that is
registered, be it the one that was made of them or, with `use.latest.version`, somebody else's.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ottla.connect.converters.base import TYPE, Converted, Converter, OwnHeaders, RawHeaders, Role, Written
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
    OneOf,
    Texts,
)
from ottla.registry.languages import LANGUAGES
from ottla.registry.lookup import Registered, Registry, UnknownSchema
from ottla.registry.schemas.base import (
    DEFAULT_STEPS,
    Budget,
    InvalidSchema,
    LanguageName,
    Resolved,
    TooComplex,
)
from ottla.registry.schemas.base import Schema as RegistrySchema
from ottla.serdes.base import SerdeError
from ottla.serdes.schema_ids import HEADER_OF, SCHEMA_HEADERS, Part, SchemaId, framed, guid_header, schema_of

_TOPIC_NAMES: Final = "TopicNameStrategy"
_NAMINGS: Final = (_TOPIC_NAMES, "RecordNameStrategy", "TopicRecordNameStrategy")
_ID_PLACES: Final = {"PrefixSchemaIdSerializer": False, "HeaderSchemaIdSerializer": True}
"""Whether the schema's GUID goes into a header (Confluent 8.0), by the simple name of Confluent's class."""

REGISTRY_KEYS: Final = (
    TYPE,
    ConfigKey("schema.registry.url", LIST, REQUIRED, HIGH, "Addresses of the registry, each http://host:port."),
    ConfigKey("auto.register.schemas", BOOLEAN, True, MEDIUM, "Whether a schema that is new is registered."),
    ConfigKey("use.latest.version", BOOLEAN, False, LOW, "Whether the subject's latest schema is written with."),
    ConfigKey(
        "latest.compatibility.strict",
        BOOLEAN,
        True,
        LOW,
        "With use.latest.version: whether the latest schema has to be able to read what the value's own would write.",
    ),
    ConfigKey("normalize.schemas", BOOLEAN, False, MEDIUM, "Whether schemas are normalized before they are looked up."),
    ConfigKey(
        "basic.auth.credentials.source",
        STRING,
        "URL",
        MEDIUM,
        "Where name and password are: URL or USER_INFO.",
        OneOf(("URL", "USER_INFO")),
    ),
    ConfigKey("basic.auth.user.info", PASSWORD, None, MEDIUM, "Name and password, with a colon between."),
    ConfigKey("schema.registry.basic.auth.user.info", PASSWORD, None, MEDIUM, "The same, under its older name."),
    ConfigKey("bearer.auth.token", PASSWORD, None, MEDIUM, "A bearer's token."),
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
    ConfigKey(
        "key.schema.id.serializer",
        CLASS,
        "PrefixSchemaIdSerializer",
        LOW,
        "Where a key names its schema: PrefixSchemaIdSerializer (id in front) or HeaderSchemaIdSerializer (GUID in a "
        "header). Both are read.",
    ),
    ConfigKey("value.schema.id.serializer", CLASS, "PrefixSchemaIdSerializer", LOW, "Where a value names its schema."),
    ConfigKey("schemas.cache.config", INT, 1000, LOW, "How many schemas are remembered."),
)


class Reading(NamedTuple):
    """How records of one schema become values; `read` is given their bytes and where the payload begins. Without a
    schema, as a record of Protobuf may be any message of a file, it gives schema and value."""

    schema: Schema | None
    read: Callable[[bytes, int], Any]


class Encoding(NamedTuple):
    """How values become payloads of a schema of the registry."""

    write: Callable[[Any], bytes]
    indexes: bytes = b""
    """Which message of the schema it is; of Protobuf alone."""


class Writing(NamedTuple):
    """How values of one schema become bytes. `front` and `header` name the schema of the registry, either of them."""

    front: bytes
    header: bytes | None
    write: Callable[[Any], bytes]


class Rendered(NamedTuple):
    """A schema in the language of the registry."""

    text: str
    record_name: str | None


class RegisteredConverter(Converter):
    """Bytes name their schema by an id in front or a GUID in a header."""

    CONFIG = ConfigDef(*REGISTRY_KEYS)
    language: ClassVar[LanguageName]
    faults: ClassVar[tuple[type[Exception], ...]] = (ValueError, LookupError, TypeError, ArithmeticError, EOFError)

    def __init__(self, given: Texts, role: Role, registry: Registry | None = None) -> None:
        super().__init__(given, role)
        self._registry = registry or self._client()
        self._naming = self._chosen("subject.name.strategy", _NAMINGS, _TOPIC_NAMES)
        self._in_headers = _ID_PLACES[self._chosen("schema.id.serializer", tuple(_ID_PLACES), next(iter(_ID_PLACES)))]
        self._part: Part = "key" if role == "key" else "value"
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

        user, password = self._login()
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

    def _login(self) -> tuple[str, str]:
        """Name and password: of the setting, or of the first address that has them."""
        find = self.config.find_password
        info = find("basic.auth.user.info") or find("schema.registry.basic.auth.user.info")
        if info:
            user, _, password = info.partition(":")
            return user, password
        for url in self.config.get_list("schema.registry.url"):
            parts = urlsplit(url)
            if parts.username:
                return unquote(parts.username), unquote(parts.password or "")
        return "", ""

    def _chosen(self, setting: str, known: tuple[str, ...], for_headers: str) -> str:
        """One of Confluent's classes, with or without its package."""
        if self.role == "header":
            return for_headers
        key = f"{self.role}.{setting}"
        simple = self.config.get_str(key).rpartition(".")[2]
        if simple not in known:
            raise ConfigError.of(key, simple, f"one of {', '.join(known)} expected")
        return simple

    # ---- what a language says

    @abstractmethod
    def reading(self, registered: Registered, found: SchemaId) -> Reading:
        """Raises SerdeError, InvalidSchema or ConnectException."""

    @abstractmethod
    def rendered(self, schema: Schema | None, sample: Any) -> Rendered:
        """`sample`: a value, of which a schema is made where there is none. Raises ConnectException."""

    @abstractmethod
    def encoding(self, registered: Registered, schema: Schema | None, sample: Any) -> Encoding:
        """How values of a Connect schema are written by one of the registry. Raises what `rendered` does."""

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
                found, start = schema_of(data, headers, self._part)
                reading = self._readings.get(found) or self._learnt(found)
                if start == 5 and not any(name in SCHEMA_HEADERS for name, _ in headers):
                    self._by_prefix[data[:5]] = reading
            value = reading.read(data, start)
            return value if reading.schema is None else SchemaAndValue(reading.schema, value)
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

    def from_connect(
        self, topic: str, column: Sequence[SchemaAndValue], headers: Sequence[OwnHeaders] | None = None
    ) -> list[Written]:
        out: list[Written] = []
        for index, given in enumerate(column):
            try:
                out.append(self._write(topic, given, headers[index] if headers is not None else None))
            except ConnectException as error:
                out.append(error)
        return out

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        return self._write(topic, given, None)

    def _write(self, topic: str, given: SchemaAndValue, headers: OwnHeaders | None) -> bytes | None:
        schema, value = given
        if headers:  # those of whatever this record was made of speak of other bytes
            headers[:] = [each for each in headers if each[0] != HEADER_OF[self._part]]
        if value is None and (schema is None or schema.optional):
            return None
        writing = self._writings.get((topic, schema)) if schema is not None else None
        try:
            if writing is None:
                writing = self._begun(topic, schema, value)
            payload = writing.write(value)
        except ConnectException:
            raise
        except self._expected as error:
            raise DataException(f"Failed to serialize {self.language} data from topic {topic} : {error}") from error
        if writing.header is None or headers is None:
            return writing.front + payload
        headers.append((HEADER_OF[self._part], writing.header))
        return payload

    def _begun(self, topic: str, schema: Schema | None, value: Any) -> Writing:
        registered = self._registered(topic, self.rendered(schema, value))
        write, indexes = self.encoding(registered, schema, value)
        header = guid_header(registered.guid) + indexes if self._in_headers else None
        if len(self._writings) >= self._most:
            self._writings.clear()
        made = Writing(framed(registered.id, indexes), header, write)
        if schema is not None:
            self._writings[topic, schema] = made
        return made

    def _registered(self, topic: str, own: Rendered) -> Registered:
        subject = self._subject(topic, own.record_name)
        if self.config.get_bool("use.latest.version"):
            registered = self._registry.latest(subject)
            if registered.language != self.language:
                raise SerdeError(f"subject {subject} has schemas of {registered.language}, not of {self.language}")
            if self.config.get_bool("latest.compatibility.strict"):
                self._check_latest(subject, registered, own)
        else:
            auto, text = self.config.get_bool("auto.register.schemas"), own.text
            if self.config.get_bool("normalize.schemas"):
                text = self._parsed(text).normalized().text
            ask = self._registry.register if auto else self._registry.find
            registered = ask(subject, self.language, text, ())
        if self._in_headers and not registered.guid:
            raise SerdeError(
                "this registry gives no GUIDs that could be put into headers: use PrefixSchemaIdSerializer"
            )
        return registered

    def _check_latest(self, subject: str, latest: Registered, own: Rendered) -> None:
        reader, writer = self._parsed(latest.text, latest.resolved), self._parsed(own.text)
        differences = reader.reading(writer, "STRICT", Budget(DEFAULT_STEPS))
        if differences:
            told = "; ".join(each.worded("latest", "own") for each in differences)
            raise SerdeError(
                f"the latest schema of {subject} cannot read what the value's own would write: {told} "
                "(latest.compatibility.strict=false lets it pass)"
            )

    def _parsed(self, text: str, resolved: Sequence[Resolved] = ()) -> RegistrySchema:
        return LANGUAGES[self.language]().parse(text, resolved, Budget(DEFAULT_STEPS), new=False)

    def _subject(self, topic: str, record_name: str | None) -> str:
        if self._naming == _TOPIC_NAMES:
            return f"{topic}-{self._part}"
        if record_name is None:
            raise SerdeError(
                f"with {self._part}.subject.name.strategy={self._naming} a {self._part} has to be a record"
            )
        return record_name if self._naming == "RecordNameStrategy" else f"{topic}-{record_name}"
