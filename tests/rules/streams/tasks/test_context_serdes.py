"""Serdes that look at the topic and the headers of a record."""

from typing import Any

from ottla.streams import Consumed, ContextSerde, Materialized, Produced, Serdes, StreamsBuilder, TopologyTestDriver


class Marked(ContextSerde[str]):
    """Writes the topic in front of the text, and a header; reads only what was written for the same topic."""

    def encode_for(self, value: str, topic: str, headers: list[tuple[str, bytes | None]]) -> bytes:
        headers.append(("written-for", topic.encode()))
        return f"{topic}|{value}".encode()

    def decode_from(self, data: bytes, topic: str, headers: list[tuple[str, bytes | None]]) -> str:
        mark, _, value = data.decode().partition("|")
        assert mark == topic
        return value + "".join(f"[{name}]" for name, _ in headers if name != "written-for")


class Strict(Marked):
    """Tells of every header that it sees."""

    def decode_from(self, data: bytes, topic: str, headers: list[tuple[str, bytes | None]]) -> str:
        return super().decode_from(data, topic, []) + "".join(f"[{name}]" for name, _ in headers)


def test_a_serde_sees_where_a_record_is_read_and_written_and_may_add_headers() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(Serdes.string, Marked()))
    stream.to_table(Materialized("kept", Serdes.string, Marked())).to_stream().to(
        "out", Produced(Serdes.string, Marked())
    )
    with TopologyTestDriver(builder.build(), "app") as driver:
        driver.create_input_topic("in").pipe_input("k", "v", 1, {"trace": b"7"})
        (written,) = driver.output("out")
        assert (written.value, written.headers) == (
            b"out|v[trace]",
            (("trace", b"7"), ("written-for", b"in"), ("written-for", b"out")),
        )
        (logged,) = driver.output("app-kept-changelog")
        assert logged.value == b"app-kept-changelog|v[trace]"
        kept: Any = driver.get_key_value_store("kept").get("k")
        assert kept == "v[trace]"


def test_in_a_store_it_sees_no_headers_not_even_those_it_has_added_itself() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(Serdes.string, Serdes.string))
    stream.to_table(Materialized("kept", Serdes.string, Strict()))
    with TopologyTestDriver(builder.build(), "app") as driver:
        driver.create_input_topic("in").pipe_many([("k", "v", 1), ("k", "w", 2)])
        kept: Any = driver.get_key_value_store("kept").get("k")
        assert kept == "w"


def test_a_global_table_sees_the_name_of_its_topic_and_reads_the_headers_there() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("names", Consumed(Serdes.string, Marked()), Materialized("kept"))
    stream = builder.stream("in", Consumed(Serdes.string, Serdes.string))
    stream.join(table, lambda line, name: f"{line} {name}", key_mapper=lambda key, _: key).to(
        "out", Produced(Serdes.string, Serdes.string)
    )
    with TopologyTestDriver(builder.build(), "app") as driver:
        driver.create_input_topic("names").pipe_input("k", "Ada", 1, {"trace": b"7"})
        driver.create_input_topic("in").pipe_input("k", "hello", 2)
        assert driver.create_output_topic("out").read_key_values() == [("k", "hello Ada[trace]")]
        assert driver.get_state_store("kept").raw(b"k")[8:] == b"names|Ada[trace]"
