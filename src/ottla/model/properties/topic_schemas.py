"""What a topic may ask of its records' schemas: Confluent's names where Confluent has one.

Internal, as Kafka calls it: described where they are set, so that any other topic looks as Kafka's do.
"""

from ottla.model.properties.property import BOOLEAN, MEDIUM, STRING, Property

_STRATEGIES = tuple(
    f"{package}{name}"
    for package in ("io.confluent.kafka.serializers.subject.", "")
    for name in ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
)


def _of(part: str) -> tuple[Property, Property]:
    return (
        Property(
            f"confluent.{part}.schema.validation",
            BOOLEAN,
            False,
            f"Whether the broker refuses records whose {part} names no schema that is registered under its subject.",
            MEDIUM,
            internal=True,
        ),
        Property(
            f"confluent.{part}.subject.name.strategy",
            STRING,
            _STRATEGIES[0],
            f"How the subject of a {part} is named: after the topic, the record, or both.",
            MEDIUM,
            one_of=_STRATEGIES,
            internal=True,
        ),
    )


PROPERTIES: tuple[Property, ...] = (
    *_of("key"),
    *_of("value"),
    Property(
        "ottla.schema.validation.depth",
        STRING,
        "id",
        "How closely the broker looks where it validates: `id` at the schema that is named, `payload` also at whether "
        "the bytes are a record of it.",
        MEDIUM,
        one_of=("id", "payload"),
        internal=True,
    ),
    Property(
        "ottla.schema.validation.dead.letter.topic",
        STRING,
        "",
        "Where records go that do not pass, with the reason in their headers; the others are stored. Empty: the whole "
        "batch is refused.",
        MEDIUM,
        internal=True,
    ),
)
