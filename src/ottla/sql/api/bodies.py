"""Bodies of requests, and how errors are worded."""

from typing import Any, Final

import msgspec

from ottla.client.errors import ClientError, KafkaError
from ottla.http.problems import Problem
from ottla.model.errors import Errors
from ottla.sql.errors import BAD_STATEMENT, SqlError

KSQL_JSON: Final = "application/vnd.ksql.v1+json"
DELIMITED: Final = "application/vnd.ksqlapi.delimited.v1"
PROTOBUF: Final = "application/vnd.ksql.v1+protobuf"


_DENIED: Final = (
    Errors.TOPIC_AUTHORIZATION_FAILED,
    Errors.GROUP_AUTHORIZATION_FAILED,
    Errors.CLUSTER_AUTHORIZATION_FAILED,
    Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


class KsqlRequest(msgspec.Struct, rename="camel"):
    ksql: str = ""
    streams_properties: dict[str, Any] | None = None
    session_variables: dict[str, Any] | None = None
    request_properties: dict[str, Any] | None = None
    command_sequence_number: int | None = None


class QueryStreamRequest(msgspec.Struct, rename="camel"):
    sql: str = ""
    properties: dict[str, Any] | None = None
    session_variables: dict[str, Any] | None = None
    request_properties: dict[str, Any] | None = None


class CloseQueryRequest(msgspec.Struct, rename="camel"):
    query_id: str = ""


class TerminateRequest(msgspec.Struct, rename="camel"):
    delete_topic_list: list[str] | None = None


def variables(given: dict[str, Any] | None) -> dict[str, str]:
    """Whose names do not look at case."""
    return {name.upper(): str(value) for name, value in (given or {}).items()}


def problem_of(error: SqlError) -> Problem:
    """Status and code: the code is the status times a hundred, and a number more."""
    facts: dict[str, Any] = {"@type": "statement_error" if error.code == BAD_STATEMENT else "generic_error"}
    if error.statement:
        facts |= {"statementText": error.statement, "entities": getattr(error, "entities", [])}
    return Problem(error.code // 100, str(error), error.code, facts=facts)


def cluster_problem(error: ClientError) -> Problem:
    """What the brokers did not do. Who is not allowed is told so, with ksqlDB's code."""
    if isinstance(error, KafkaError) and error.error in _DENIED:
        return Problem(403, f"the cluster does not allow it: {error}", 40301)
    return Problem(500, f"the cluster does not answer as it should: {error}", 50000)


def problem_body(problem: Problem) -> Any:
    """Old clients want a stackTrace to read."""
    code = problem.code if problem.code is not None else problem.status * 100
    return {
        "@type": "generic_error",
        "error_code": code,
        "message": problem.message,
        "stackTrace": [],
        **problem.facts,
    }
