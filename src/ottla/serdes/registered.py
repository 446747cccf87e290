"""What serdes by schemas of a registry have in common, whatever the language: which schema a record has, under which
subject one's own is kept, and where its id goes. A language says how bytes are read and written (`RegisteredSerde`)."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from ottla.registry.lookup import Registered, Registry, UnknownSchema
from ottla.registry.schemas.base import InvalidSchema, LanguageName, Reference, Resolved, TooComplex
from ottla.serdes.base import ColumnSerde, SerdeError, shown, shown_value
from ottla.serdes.schema_ids import HEADER_OF, ID_BYTES, Headers, Part, SchemaId, framed, guid_header, schema_of
from ottla.serdes.types import ANY, Type

S = TypeVar("S")

Naming: TypeAlias = Literal["topic", "record", "topic_record"]
"""Which subject a schema belongs to: `<topic>-value`, the record's full name, or `<topic>-<record>`."""
Ids: TypeAlias = Literal["payload", "header"]
Decode: TypeAlias = Callable[[bytes, int], Any]
"""Of a record, from where its payload begins."""
Encode: TypeAlias = Callable[[Any], bytes]


class RegisteredSerde(ColumnSerde[Any], Generic[S]):
    """The schema's id in front of the payload or its GUID in a header; both are read. S: a schema, parsed."""

    language: ClassVar[LanguageName]
    faults: ClassVar[tuple[type[Exception], ...]]
    """What the language's code raises for bytes or values that are not of the schema."""

    def __init__(
        self,
        registry: Registry,
        text: str | None,
        *,
        subject: str | None = None,
        part: Part = "value",
        ids: Ids = "payload",
        naming: Naming = "topic",
        register: bool = True,
        references: Sequence[Reference] = (),
    ) -> None:
        """`subject`: where the schema is kept; else `naming` says so. Without a text the subject's latest schema is
        asked for now; without a subject too, records are read with whatever schemas they have, and have no type."""
        for what, given, known in (("part", part, Part), ("ids", ids, Ids), ("naming", naming, Naming)):
            if given not in get_args(known):
                raise ValueError(f"{what} is one of {', '.join(get_args(known))}, not {given!r}")
        self.registry = registry
        self.part = part
        self.ids = ids
        self.naming = naming
        self.subject = subject
        self.register = register
        self.references = tuple(references)
        self.text = text
        self.resolved: tuple[Resolved, ...] = ()
        if text is not None:
            self.resolved = registry.resolve(references) if references else ()
        elif subject is not None:
            self._take(registry.latest(subject), subject)
        self._memo: _Memo[S] = _Memo()
        own = self.own_schema()
        self.type = ANY if own is None else self.type_of(own)

    def _take(self, latest: Registered, subject: str) -> None:
        if latest.language != self.language:
            raise ValueError(f"subject {subject} has schemas of {latest.language}, not of {self.language}")
        self.text, self.references, self.resolved = latest.text, latest.references, latest.resolved

    def __repr__(self) -> str:
        own = self.own_schema()
        return f"Serdes.{self.name}" if own is None else f"Serdes.{self.name}({self.record_name(own)})"

    @property
    def has_columns(self) -> bool:
        return not self.type.has("any", "null") and self.ids == "payload"

    # ---- what a language says

    @abstractmethod
    def parse(self, text: str, resolved: Sequence[Resolved]) -> S:
        """Raises InvalidSchema or TooComplex."""

    @abstractmethod
    def type_of(self, schema: S) -> Type: ...

    @abstractmethod
    def record_name(self, schema: S) -> str: ...

    @abstractmethod
    def decoding(self, writer: S, found: SchemaId, *, for_columns: bool) -> Decode:
        """`found`: how the record named its schema, and maybe what of it."""

    @abstractmethod
    def encoding(self, schema: S) -> Encode: ...

    def indexes(self, schema: S) -> bytes:
        """What of the schema a record is, behind its id."""
        return b""

    # ---- reading

    def decode_from(self, data: bytes, topic: str, headers: Headers) -> Any:
        return self.read(data, headers, for_columns=False)

    def read(self, data: bytes, headers: Headers, *, for_columns: bool) -> Any:
        prefix = data[:ID_BYTES]
        decode = None if headers else self._memo.by_prefix.get((prefix, for_columns))
        try:
            if decode is not None:
                return decode(data, ID_BYTES)
            found, start = schema_of(data, headers, self.part)
            decode = self._memo.decoders.get((found, for_columns)) or self._decoder(found, for_columns)
            if start == ID_BYTES:  # nearly always: then it is known by its bytes from now on
                self._memo.by_prefix[prefix, for_columns] = decode
            return decode(data, start)
        except SerdeError as error:
            raise SerdeError(f"{self!r}: {error}") from error.__cause__
        except self.faults as error:
            found, _ = schema_of(data, headers, self.part)
            why = str(error) or type(error).__name__
            raise SerdeError(
                f"{self!r}: {self.language} of schema {found} expected, found {shown(data)}: {why}"
            ) from error

    def _decoder(self, found: SchemaId, for_columns: bool) -> Decode:
        made = self.decoding(self._writer(found), found, for_columns=for_columns)
        self._memo.decoders[found, for_columns] = made
        return made

    def _writer(self, found: SchemaId) -> S:
        try:
            by_guid, by_id = found.guid, found.id or 0
            registered = self.registry.by_id(by_id) if by_guid is None else self.registry.by_guid(by_guid)
        except UnknownSchema as error:
            raise SerdeError(f"schema {found} is not known: {error}") from error
        if registered.language != self.language:
            raise SerdeError(f"schema {found} is of {registered.language}, not of {self.language}")
        return self._parsed(registered)

    # ---- writing

    def encode_for(self, value: Any, topic: str, headers: list[tuple[str, bytes | None]]) -> bytes:
        registered, payload, indexes = self._encoded(value, topic)
        if headers:  # those of the record that this one was made of speak of other bytes
            headers[:] = [each for each in headers if each[0] != HEADER_OF[self.part]]
        if self.ids == "header":
            headers.append((HEADER_OF[self.part], guid_header(registered.guid) + indexes))
            return payload
        return framed(registered.id, indexes + payload)

    def encode_kept(self, value: Any, topic: str) -> bytes:
        registered, payload, indexes = self._encoded(value, topic)
        return framed(registered.id, indexes + payload)

    def announce(self, topic: str) -> None:
        """Its schema is in the registry before the first value is written to the topic."""
        if topic not in self._memo.written:
            self._written(topic)

    def _encoded(self, value: Any, topic: str) -> tuple[Registered, bytes, bytes]:
        registered, encode, indexes = self._memo.written.get(topic) or self._written(topic)
        try:
            return registered, encode(value), indexes
        except self.faults as error:
            raise SerdeError(f"{self!r}: {error}; the value is {shown_value(value)}") from error

    def _written(self, topic: str) -> "_Written":
        try:
            registered = self._registered(topic)
            schema = self._parsed(registered)
            encode, indexes = self.encoding(schema), self.indexes(schema)
        except (UnknownSchema, SerdeError) as error:
            raise SerdeError(f"{self!r}: nothing can be written to topic {topic!r}: {error}") from error
        made = self._memo.written[topic] = _Written(registered, encode, indexes)
        return made

    def _registered(self, topic: str) -> Registered:
        own = self.own_schema()
        subject = self._subject(topic, own)
        if self.text is None:
            registered = self.registry.latest(subject)
        else:
            ask = self.registry.register if self.register else self.registry.find
            registered = ask(subject, self.language, self.text, self.references)
        if registered.language != self.language:
            raise SerdeError(f"subject {subject} has schemas of {registered.language}, not of {self.language}")
        if self.ids == "header" and not registered.guid:
            raise SerdeError("this registry gives no GUIDs that could be put into headers: use ids='payload'")
        return registered

    def _subject(self, topic: str, own: S | None) -> str:
        if self.subject is not None:
            return self.subject
        record = None if own is None or self.naming == "topic" else self.record_name(own)
        if record is not None and self.naming == "record":
            return record
        if not topic:
            raise SerdeError("its schema is kept by topic, and here is none: name a subject")
        return f"{topic}-{self.part}" if record is None else f"{topic}-{record}"

    # ---- schemas

    def own_schema(self) -> S | None:
        if self.text is not None and self._memo.schema is None:
            try:
                self._memo.schema = self.parse(self.text, self.resolved)
            except (InvalidSchema, TooComplex) as error:
                raise ValueError(f"the schema of a serde is none: {error}") from error
        return self._memo.schema

    def _parsed(self, registered: Registered) -> S:
        try:
            return self.parse(registered.text, registered.resolved)
        except (InvalidSchema, TooComplex) as error:
            raise SerdeError(f"schema {registered.id} is none: {error}") from error


class _Written(NamedTuple):
    """How records of a topic are written."""

    registered: Registered
    encode: Encode
    indexes: bytes


class _Memo(Generic[S]):
    """What a serde has made of schemas so far. It does not travel, and serdes are equal whatever they have met."""

    def __init__(self) -> None:
        self.schema: S | None = None
        self.decoders: dict[tuple[SchemaId, bool], Decode] = {}
        self.by_prefix: dict[tuple[bytes, bool], Decode] = {}
        self.written: dict[str, _Written] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Memo)

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> "tuple[type[_Memo[S]], tuple[()]]":
        return _Memo, ()
