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
