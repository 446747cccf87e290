"""RANDOM() and UUID(): other numbers at every place, the same when they are thrown again."""

from ottla.sql.testing import run

STATEMENTS = """
CREATE STREAM s (id INT KEY, v STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM o AS SELECT id, RANDOM() AS a, RANDOM() AS b, UUID() AS c, UUID() AS d FROM s;
"""


def test_dice_of_one_statement_fall_apart_and_stay_as_they_fell() -> None:
    records = [{"topic": "t", "key": key, "value": {"V": "x"}} for key in (1, 2)]
    outputs, _ = run(STATEMENTS, records)
    first, second = (each["value"] for each in outputs)
    assert len({first["A"], first["B"], second["A"], second["B"]}) == 4
    assert len({first["C"], first["D"], second["C"], second["D"]}) == 4
    assert run(STATEMENTS, records)[0] == outputs
