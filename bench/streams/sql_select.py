"""The statement; `dsl_select.py` is the same by the DSL."""

from os import environ

from ottla.sql.application import application

app = application(
    f"""
    CREATE STREAM orders (ID STRING KEY, CUSTOMER STRING, ITEM STRING, PRICE DOUBLE, N INT)
        WITH (KAFKA_TOPIC='{environ["BENCH_INPUT"]}', VALUE_FORMAT='JSON');
    CREATE STREAM dear WITH (KAFKA_TOPIC='{environ["BENCH_OUTPUT"]}') AS
        SELECT ID, UCASE(CUSTOMER) AS CUSTOMER, ITEM || '!' AS ITEM, PRICE * N + 1 AS TOTAL
        FROM orders WHERE PRICE > 10 AND N > 0;
    """,
    environ["BENCH_APPLICATION"],
).app
