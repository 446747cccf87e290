"""Clients of a schema registry in several languages, behind the same few verbs. The record they write is an order."""

import base64
import json
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from ottla.registry.client import RegistryClient, RegistryRefused
from ottla.registry.schemas.base import Reference
from ottla.serdes.by_name import Serdes
from ottla.serdes.registered import Ids, Naming
from ottla.serdes.schema_ids import Part
from tests.support.clients.base import Refused
from tests.support.clients.foreign import go_program, node_program
from tests.support.programs import Dialogue

Order = dict[str, Any]
"""`id`, and `cents`, which in Protobuf's JSON is a text: whoever reads it so makes it a number again."""


@dataclass(frozen=True, slots=True)
class OrderSchema:
    """A schema of orders: its text, the record's full name, and what it refers to."""

    type: Any
    text: str
    record: str
    references: tuple[Reference, ...] = ()
    files: FileDescriptorSet = field(default_factory=FileDescriptorSet)
    """Of Protobuf, for clients that generate code from files: the last of them is the text's."""

    @property
    def shown_references(self) -> list[dict[str, Any]]:
        return [{"name": each.name, "subject": each.subject, "version": each.version} for each in self.references]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record is written, where its schema is kept, and where it names it."""

    topic: str
    part: Part = "value"
    naming: Naming = "topic"
    ids: Ids = "payload"

    def subject(self, record: str) -> str:
        return {"topic": f"{self.topic}-{self.part}", "record": record, "topic_record": f"{self.topic}-{record}"}[
            self.naming
        ]


class Data(NamedTuple):
    """As it would lie in a topic."""

    payload: bytes
    headers: list[tuple[str, bytes | None]]


class RegistryUser(Protocol):
    """What it is refused is Refused, with the status of the answer."""

    name: ClassVar[str]
    lacks: ClassVar[frozenset[str]]
    """What this client has no way to do."""

    def register(self, subject: str, type: Any, text: str, references: Sequence[Reference] = ()) -> int: ...

    def lookup(self, subject: str, type: Any, text: str) -> int: ...

    def latest(self, subject: str) -> int: ...

    def delete_version(self, subject: str, version: int) -> int:
        """Softly."""

    def delete(self, subject: str) -> list[int]:
        """Softly, then for good."""

    def encode(self, place: Place, schema: OrderSchema, value: Order) -> Data: ...

    def decode(self, place: Place, schema: OrderSchema, data: Data) -> Order: ...

    def close(self) -> None: ...


class ConfluentPython:
    name: ClassVar[str] = "confluent-python"
    lacks: ClassVar[frozenset[str]] = frozenset()
    _strategies: ClassVar[dict[Naming, Any]] = {
        "topic": topic_subject_name_strategy,
        "record": record_subject_name_strategy,
        "topic_record": topic_record_subject_name_strategy,
    }

    def __init__(self, url: str) -> None:
        self._opened = ExitStack()
        self._client = self._opened.enter_context(SchemaRegistryClient({"url": url}))

    @staticmethod
    @contextmanager
    def _asking() -> Any:
        try:
            yield
        except SchemaRegistryError as error:
            raise Refused(error.http_status_code, str(error)) from error

    def register(self, subject: str, type: Any, text: str, references: Sequence[Reference] = ()) -> int:
        with self._asking():
            return int(self._client.register_schema(subject, self._schema(type, text, references)))

    @staticmethod
    def _schema(type: Any, text: str, references: Sequence[Reference]) -> Schema:
        return Schema(text, type, [SchemaReference(each.name, each.subject, each.version) for each in references])

    def lookup(self, subject: str, type: Any, text: str) -> int:
        with self._asking():
            return int(self._client.lookup_schema(subject, Schema(text, type)).schema_id or 0)

    def latest(self, subject: str) -> int:
        with self._asking():
            return int(self._client.get_latest_version(subject).schema_id or 0)

    def delete_version(self, subject: str, version: int) -> int:
        with self._asking():
            return int(self._client.delete_version(subject, version))

    def delete(self, subject: str) -> list[int]:
        with self._asking():
            self._client.delete_subject(subject)
            return list(self._client.delete_subject(subject, permanent=True))

    def encode(self, place: Place, schema: OrderSchema, value: Order) -> Data:
        put = header_schema_id_serializer if place.ids == "header" else prefix_schema_id_serializer
        conf = {"subject.name.strategy": self._strategies[place.naming], "schema.id.serializer": put}
        at, known = self._at(place), self._schema(schema.type, schema.text, schema.references)
        made: Any
        if schema.type == "PROTOBUF":
            message = _message_class(schema)
            made, value = ProtobufSerializer(message, self._client, conf=conf), message(**value)
        elif schema.type == "AVRO":
            made = AvroSerializer(self._client, known, conf=conf)
        else:
            made = JSONSerializer(known, self._client, conf=conf)
        payload: bytes = made(value, at)
        assert isinstance(at.headers, list)
        return Data(payload, [(name, mark) for name, mark in at.headers if isinstance(mark, bytes)])

    def decode(self, place: Place, schema: OrderSchema, data: Data) -> Order:
        at = self._at(place)
        at.headers = list(data.headers)
        conf = {"subject.name.strategy": self._strategies[place.naming]}
        if schema.type == "PROTOBUF":
            found: Any = ProtobufDeserializer(_message_class(schema), conf, self._client)(data.payload, at)
            return json_format.MessageToDict(found)
        if schema.type == "AVRO":
            value: Order = AvroDeserializer(self._client, conf=conf)(data.payload, at)
        else:
            value = JSONDeserializer(None, schema_registry_client=self._client, conf=conf)(data.payload, at)
        return value

    @staticmethod
    def _at(place: Place) -> SerializationContext:
        return SerializationContext(place.topic, MessageField[place.part.upper()], [])

    def close(self) -> None:
        self._opened.close()


def _message_class(schema: OrderSchema) -> Any:
    pool = DescriptorPool()
    for each in schema.files.file:
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.record))


class Ours:
    """The client of our pipelines, which reads and writes and deletes nothing."""

    name: ClassVar[str] = "ottla"
    lacks: ClassVar[frozenset[str]] = frozenset({"delete"})

    def __init__(self, url: str) -> None:
        self._client = RegistryClient(url)

    @staticmethod
    @contextmanager
    def _asking() -> Any:
        try:
            yield
        except RegistryRefused as error:
            raise Refused(error.code // 100, str(error)) from error

    def register(self, subject: str, type: Any, text: str, references: Sequence[Reference] = ()) -> int:
        with self._asking():
            return self._client.register(subject, type, text, references).id

    def lookup(self, subject: str, type: Any, text: str) -> int:
        with self._asking():
            return self._client.find(subject, type, text).id

    def latest(self, subject: str) -> int:
        with self._asking():
            return self._client.latest(subject).id

    def delete_version(self, subject: str, version: int) -> int:
        raise NotImplementedError

    def delete(self, subject: str) -> list[int]:
        raise NotImplementedError

    def encode(self, place: Place, schema: OrderSchema, value: Order) -> Data:
        headers: list[tuple[str, bytes | None]] = []
        serde = self._serde(
            schema, text=schema.text, part=place.part, naming=place.naming, ids=place.ids, references=schema.references
        )
        return Data(serde.encode_for(value, place.topic, headers), headers)

    def decode(self, place: Place, schema: OrderSchema, data: Data) -> Order:
        value: Order = self._serde(schema, part=place.part).decode_from(data.payload, place.topic, data.headers)
        return value

    def _serde(self, schema: OrderSchema, text: str | None = None, **options: Any) -> Any:
        made = {"AVRO": Serdes.avro, "JSON": Serdes.json_schema, "PROTOBUF": Serdes.protobuf}[schema.type]
        return made(self._client, text, **options)

    def close(self) -> None:
        self._client.close()


class _Foreign:
    lacks: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, command: list[str], url: str) -> None:
        self._dialogue = Dialogue("the driver", [*command, url])

    def _ask(self, op: str, **given: Any) -> Any:
        answer = json.loads(self._dialogue.ask(json.dumps({"op": op, **given})))
        if "error" in answer:
            raise Refused(answer["error"], answer["detail"])
        return answer["ok"]

    def register(self, subject: str, type: Any, text: str, references: Sequence[Reference] = ()) -> int:
        shown = OrderSchema(type, text, "", tuple(references)).shown_references
        return int(self._ask("register", subject=subject, type=type, schema=text, references=shown))

    def lookup(self, subject: str, type: Any, text: str) -> int:
        return int(self._ask("lookup", subject=subject, type=type, schema=text))

    def latest(self, subject: str) -> int:
        return int(self._ask("latest", subject=subject))

    def delete_version(self, subject: str, version: int) -> int:
        return int(self._ask("delete_version", subject=subject, version=version))

    def delete(self, subject: str) -> list[int]:
        return list(self._ask("delete", subject=subject))

    def encode(self, place: Place, schema: OrderSchema, value: Order) -> Data:
        known = self._known(place.subject(schema.record), schema)
        files = base64.b64encode(schema.files.SerializeToString()).decode()
        answer = self._ask("encode", id=known, value=value, **self._told(place, schema), files=files)
        headers = [(name, base64.b64decode(mark)) for name, mark in answer["headers"].items()]
        return Data(base64.b64decode(answer["payload"]), [*headers])

    def decode(self, place: Place, schema: OrderSchema, data: Data) -> Order:
        headers = {name: base64.b64encode(mark or b"").decode() for name, mark in data.headers}
        payload = base64.b64encode(data.payload).decode()
        return dict(self._ask("decode", payload=payload, headers=headers, **self._told(place, schema)))

    def _known(self, subject: str, schema: OrderSchema) -> int:
        return self.register(subject, schema.type, schema.text, schema.references)

    @staticmethod
    def _told(place: Place, schema: OrderSchema) -> dict[str, Any]:
        return {
            "topic": place.topic,
            "part": place.part,
            "naming": place.naming,
            "ids": place.ids,
            "subject": place.subject(schema.record),
            "type": schema.type,
            "record": schema.record,
        }

    def close(self) -> None:
        self._dialogue.close()


class KafkaJs(_Foreign):
    """It knows no headers, has no call that deletes, and writes Protobuf without saying which message it is, which
    nobody else reads."""

    name: ClassVar[str] = "kafkajs"
    lacks: ClassVar[frozenset[str]] = frozenset({"delete", "header", "write PROTOBUF"})

    def __init__(self, url: str) -> None:
        super().__init__(node_program("schema-registry-js", "registry_node"), url)


class ConfluentJs(_Foreign):
    """Its packages are 170 MB: for `make matrix`."""

    name: ClassVar[str] = "confluent-js"

    def __init__(self, url: str) -> None:
        super().__init__(node_program("confluent-registry-js", "registry_confluent_node"), url)

    def _known(self, subject: str, schema: OrderSchema) -> int:
        """Its serializer registers the files of Protobuf by itself."""
        return 0 if schema.type == "PROTOBUF" else super()._known(subject, schema)


class FranzGo(_Foreign):
    name: ClassVar[str] = "franz-go"

    def __init__(self, url: str) -> None:
        super().__init__([str(go_program("schema-registry-go", "registry_go"))], url)


ALL: Final[tuple[type[RegistryUser], ...]] = (ConfluentPython, Ours, KafkaJs, FranzGo, ConfluentJs)
