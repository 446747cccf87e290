"""The statement; `dsl_windows.py` is the same by the DSL."""

from os import environ

from ottla.sql.application import application

app = application(
    f"""
    CREATE STREAM orders (ID STRING KEY, CUSTOMER STRING, ITEM STRING, PRICE DOUBLE, N INT)
        WITH (KAFKA_TOPIC='{environ["BENCH_INPUT"]}', VALUE_FORMAT='JSON');
    CREATE TABLE sums WITH (KAFKA_TOPIC='{environ["BENCH_OUTPUT"]}') AS
        SELECT ID, COUNT(*) AS ORDERS, SUM(N) AS ITEMS
        FROM orders WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 SECONDS) GROUP BY ID;
    """,
    environ["BENCH_APPLICATION"],
).app
