"""A choice between values: by null, by order, by place."""

from typing import Final

from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression


def _itself(given: Expression) -> Expression:
    return given


FUNCTIONS: Final = table(
    scalar("COALESCE", e.coalesce, "T... -> T", about="The first that is not null."),
    scalar("IFNULL", e.ifnull, "T, T -> T", about="The first, or the second if it is null."),
    scalar("NULLIF", e.ksql_nullif, "T, T -> T", about="The first, or null if the two are equal."),
    scalar("GREATEST", e.greatest, "C... -> C", about="The largest; nulls are left out."),
    scalar("LEAST", e.least, "C... -> C", about="The smallest; nulls are left out."),
    scalar("AS_VALUE", _itself, "T -> T", about="A copy of a key column for the value of the record."),
    scalar("ELT", e.elt, "INT, STRING... -> STRING", about="The text at that place, the first is 1."),
    scalar(
        "FIELD",
        e.field_position,
        "STRING, STRING... -> INT",
        about="At which place a text is among others; 0 if nowhere.",
    ),
)
