"""What the SQL shell shows of a server's answers."""

from pathlib import Path

from ottla.cli.sql.entities import told
from ottla.sql.functions import find
from ottla.sql.server import entities
from ottla.sql.server.log import Logged
from ottla.sql.server.replaying import Replaying
from tests.golden.transcripts import compare

STATEMENTS = (
    "CREATE STREAM orders (id INT KEY, item STRING, price DECIMAL(6, 2), parts ARRAY<STRUCT<A INT, B MAP<STRING, "
    "BIGINT>>>, origin BYTES HEADER('o')) WITH (KAFKA_TOPIC='orders', PARTITIONS=3, VALUE_FORMAT='JSON');",
    "CREATE TABLE spent AS\n  SELECT item, SUM(price) AS total FROM orders GROUP BY item;",
)


def test_entities_are_drawn_for_people() -> None:
    known = Replaying(None, {})
    for offset, text in enumerate(STATEMENTS):
        known.replayed(offset, Logged(text))
    catalog = known.catalog
    (query,) = catalog.queries.values()
    described = entities.query_description(
        query, "RUNNING", "N source\nN sink", "Topologies:\n", {"auto.offset.reset": "earliest"}
    )
    measured = {"statistics": f"{query.id}: read: 5, written: 3", "errorStats": f"{query.id}: late: 2"}
    story = {
        "SHOW STREAMS;": entities.source_list("", "STREAM", catalog),
        "SHOW TYPES;": entities.type_list("", catalog),
        "SHOW QUERIES;": entities.query_list("", [entities.query_row(query, "RUNNING")]),
        "SHOW TOPICS EXTENDED;": entities.topics("", [("orders", [1, 1, 1])], extended=True),
        "SHOW VARIABLES;": entities.variables("", {"who": "ann"}),
        "DESCRIBE orders;": entities.source_description("", catalog.sources["ORDERS"], catalog, {}, {}),
        "DESCRIBE spent EXTENDED;": entities.source_description("", catalog.sources["SPENT"], catalog, {}, measured),
        f"EXPLAIN {query.id};": entities.entity("queryDescription", "", queryDescription=described),
        "DESCRIBE FUNCTION LPAD;": entities.function_description("", find("LPAD")),
        "an answer of a kind that is not known": {"@type": "new", "a": [1], "warnings": [{"message": "old"}]},
        "an answer that lacks what its kind has": {"@type": "streams", "statementText": "X"},
    }
    lines = [line for question, answer in story.items() for line in (f"sql> {question}", told(answer), "")]
    compare(Path(__file__).with_name("shell.txt"), lines[:-1])
