"""What Connect's data code raises: Java's exceptions, each with the class name that traces and dead letters tell."""

from typing import ClassVar


class ConnectException(Exception):
    """Something about one record or one configuration; never a bug of ours."""

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"


class DataException(ConnectException):
    """A value that is not what its schema or its reader expects."""

    java_class = "org.apache.kafka.connect.errors.DataException"


class SchemaBuilderException(DataException):
    """A schema that cannot be."""

    java_class = "org.apache.kafka.connect.errors.SchemaBuilderException"


class NumberFormatException(ConnectException):
    """A text that is no number, where Java lets this one through."""

    java_class = "java.lang.NumberFormatException"


class ClassCastException(ConnectException):
    """A value of another class, where Java lets this one through."""

    java_class = "java.lang.ClassCastException"


class NullPointerException(ConnectException):
    """Nothing where Java takes something for granted. Ours says what was missing."""

    java_class = "java.lang.NullPointerException"


class IllegalArgumentException(ConnectException):
    """An argument that makes no sense, where Java lets this one through."""

    java_class = "java.lang.IllegalArgumentException"


class IndexOutOfBoundsException(ConnectException):
    """A group that a pattern does not have."""

    java_class = "java.lang.IndexOutOfBoundsException"


class RecordTooLargeException(ConnectException):
    """A record that is larger than its topic takes."""

    java_class = "org.apache.kafka.common.errors.RecordTooLargeException"


def java_class_of(error: BaseException) -> str:
    """What Java would call it; an exception that is not from here goes by its own name."""
    named: str | None = getattr(error, "java_class", None)
    kind = type(error)
    return named or (kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}")
