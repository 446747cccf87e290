"""Python's body and Spark's column of each SQL function and operator give the same for its examples: one DataFrame."""

from typing import TYPE_CHECKING, Any

from ottla.serdes.arrow import to_column as value_to_column
from ottla.streams.run.expression_columns import to_column
from ottla.streams.run.type_columns import spark_type
from tests.rules.sql.function_cases import COLUMNS, INPUTS, ROW, TYPES, Anything, every_case, typed
from tests.spark.test_functions import nearly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BY_THE_CLOCK = ("UNIX_TIMESTAMP()", "UNIX_DATE()")
"""Spark's own clock, where it is a column: a batch is told one time."""


def test_columns_give_what_bodies_give(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    compared: list[tuple[str, Any]] = []
    columns: list[Any] = []
    for text, expected in every_case():
        bound = typed(text).expression.bind(TYPES)
        if bound.why_not_column() is None and not isinstance(expected, Anything) and text not in BY_THE_CLOCK:
            here = bound.evaluator()(INPUTS)
            convert = value_to_column(bound.type)
            compared.append((text, here if convert is None else convert(here)))
            columns.append(to_column(bound, F.col).alias(f"c{len(columns)}"))
    assert len(columns) > 300, "most functions have a column"
    to_spark = value_to_column(COLUMNS) or (lambda given: given)
    frame = spark.createDataFrame([(to_spark(ROW),)], f"value {spark_type(COLUMNS)}")
    (found,) = frame.select(*columns).collect()
    wrong = [
        f"{text}: body {here!r}, column {there!r}"
        for (text, here), there in zip(compared, found, strict=True)
        if not nearly(here, there)
    ]
    assert wrong == []
