"""Clients of a schema registry in several languages, behind the same few verbs. The record they write is an order."""

import base64
import json
from contextlib import ExitStack
from typing import Any, ClassVar, Protocol

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ottla.registry.client import RegistryClient, RegistryRefused
from ottla.serdes.by_name import Serdes
from tests.support.clients.base import Refused
from tests.support.clients.foreign import go_program, node_program
from tests.support.programs import Dialogue

Order = dict[str, Any]


class RegistryUser(Protocol):
    name: ClassVar[str]

    def register(self, subject: str, type: str, schema: str) -> int:
        """Raises Refused."""

    def encode(self, topic: str, type: str, schema: str, value: Order) -> bytes:
        """As a value of the topic, in Confluent's wire format."""

    def decode(self, topic: str, type: str, data: bytes) -> Order: ...

    def close(self) -> None: ...


def _at(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


class ConfluentPython:
    name: ClassVar[str] = "confluent-python"

    def __init__(self, url: str) -> None:
        self._opened = ExitStack()
        self._client = self._opened.enter_context(SchemaRegistryClient({"url": url}))

    def register(self, subject: str, type: str, schema: str) -> int:
        try:
            return int(self._client.register_schema(subject, Schema(schema, type)))
        except SchemaRegistryError as error:
            raise Refused(error.http_status_code, str(error)) from error

    def encode(self, topic: str, type: str, schema: str, value: Order) -> bytes:
        conf = {"subject.name.strategy": topic_subject_name_strategy}
        made = {
            "AVRO": lambda: AvroSerializer(self._client, schema, conf=conf),
            "JSON": lambda: JSONSerializer(schema, self._client, conf=conf),
        }[type]()
        data: bytes = made(value, _at(topic))
        return data

    def decode(self, topic: str, type: str, data: bytes) -> Order:
        made = {
            "AVRO": lambda: AvroDeserializer(self._client),
            "JSON": lambda: JSONDeserializer(None, schema_registry_client=self._client),
        }[type]()
        value: Order = made(data, _at(topic))
        return value

    def close(self) -> None:
        self._opened.close()


class Ours:
    name: ClassVar[str] = "ottla"

    def __init__(self, url: str) -> None:
        self._client = RegistryClient(url)

    def register(self, subject: str, type: Any, schema: str) -> int:
        try:
            return self._client.register(subject, type, schema).id
        except RegistryRefused as error:
            raise Refused(error.code // 100, str(error)) from error

    def _serde(self, type: str, schema: str | None, topic: str) -> Any:
        made = {"AVRO": Serdes.avro, "JSON": Serdes.json_schema}[type]
        return made(self._client, schema) if schema else made(self._client, subject=f"{topic}-value")

    def encode(self, topic: str, type: str, schema: str, value: Order) -> bytes:
        data: bytes = self._serde(type, schema, topic).encode_for(value, topic, [])
        return data

    def decode(self, topic: str, type: str, data: bytes) -> Order:
        value: Order = self._serde(type, None, topic).decode_from(data, topic, [])
        return value

    def close(self) -> None:
        self._client.close()


class _Foreign:
    def __init__(self, command: list[str], url: str) -> None:
        self._dialogue = Dialogue("the driver", [*command, url])

    def _ask(self, op: str, **given: Any) -> Any:
        answer = json.loads(self._dialogue.ask(json.dumps({"op": op, **given})))
        if "error" in answer:
            raise Refused(answer["error"], answer["detail"])
        return answer["ok"]

    def register(self, subject: str, type: str, schema: str, **more: Any) -> int:
        """`more`: references."""
        return int(self._ask("register", subject=subject, type=type, schema=schema, **more))

    def lookup(self, subject: str, type: str, schema: str) -> int:
        return int(self._ask("lookup", subject=subject, type=type, schema=schema))

    def latest(self, subject: str) -> int:
        return int(self._ask("latest", subject=subject))

    def encode(self, topic: str, type: str, schema: str, value: Order, **more: Any) -> bytes:
        known = self.register(f"{topic}-value", type, schema, **more)
        return base64.b64decode(self._ask("encode", id=known, value=value))

    def decode(self, topic: str, type: str, data: bytes) -> Order:
        return dict(self._ask("decode", data=base64.b64encode(data).decode()))

    def close(self) -> None:
        self._dialogue.close()


class KafkaJs(_Foreign):
    name: ClassVar[str] = "kafkajs"

    def __init__(self, url: str) -> None:
        super().__init__(node_program("schema-registry-js", "registry_node"), url)


class ConfluentJs(_Foreign):
    """Its packages are 170 MB: for `make matrix`."""

    name: ClassVar[str] = "confluent-js"

    def __init__(self, url: str) -> None:
        super().__init__(node_program("confluent-registry-js", "registry_confluent_node"), url)

    def encode(self, topic: str, type: str, schema: str, value: Order, **more: Any) -> bytes:
        self.register(f"{topic}-value", type, schema, **more)
        return base64.b64decode(self._ask("encode", topic=topic, type=type, value=value))

    def decode(self, topic: str, type: str, data: bytes) -> Order:
        return dict(self._ask("decode", topic=topic, type=type, data=base64.b64encode(data).decode()))

    def delete(self, subject: str) -> list[int]:
        """Softly, then for good."""
        return list(self._ask("delete", subject=subject))


class FranzGo(_Foreign):
    name: ClassVar[str] = "franz-go"

    def __init__(self, url: str) -> None:
        super().__init__([str(go_program("schema-registry-go", "registry_go"))], url)

    def register(self, subject: str, type: str, schema: str, **more: Any) -> int:
        try:
            return super().register(subject, type, schema, **more)
        except Refused as refused:
            raise Refused(refused.code // 100, str(refused)) from refused

    def delete(self, subject: str) -> list[int]:
        """Softly, then for good."""
        return list(self._ask("delete", subject=subject))
