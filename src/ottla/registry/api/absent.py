"""What Confluent's server has and this one does not: associations of topics and subjects, and keys for fields (DEK).

Serializers ask for both, and are told in Confluent's own codes that there are none. Who wants to make one is told why
not.
"""

from typing import Any, Final

from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route

_KEKS: Final = "/dek-registry/v1/keks"
_DEKS: Final = f"{_KEKS}/{{name}}/deks"
_KEY_NOT_FOUND: Final = 40470
_INVALID_KEY: Final = 42271
_INVALID_ASSOCIATION: Final = 42212


class Associations:
    def routes(self) -> tuple[Route, ...]:
        none = "Associations of topics and subjects: there are none"
        query = {"resourceType": "topic", "associationType": "key or value"}
        refused = "Refused: subjects are found by their names"
        return (
            Route("GET", "/associations/subjects/{subject}", _none, none, reply=list[str], query=query),
            Route("GET", "/associations/resources/{id}", _none, none, reply=list[str], query=query),
            Route("GET", "/associations/resources/{space}/{name}", _none, none, reply=list[str], query=query),
            Route("POST", "/associations", _no_association, refused, body=bytes),
            Route("PUT", "/associations", _no_association, refused, body=bytes),
        )


class Keys:
    def routes(self) -> tuple[Route, ...]:
        none, refused = "Keys for fields: there are none", "Refused: no keys are kept here"
        return (
            Route("GET", _KEKS, _none, none, reply=list[str]),
            Route("POST", _KEKS, _no_key, refused, body=bytes),
            Route("GET", f"{_KEKS}/{{name}}", _key_not_found, none),
            Route("PUT", f"{_KEKS}/{{name}}", _key_not_found, none, body=bytes),
            Route("DELETE", f"{_KEKS}/{{name}}", _key_not_found, none),
            Route("GET", _DEKS, _key_not_found, none),
            Route("POST", _DEKS, _key_not_found, none, body=bytes),
            Route("GET", f"{_DEKS}/{{subject}}", _key_not_found, none),
            Route("POST", f"{_DEKS}/{{subject}}", _key_not_found, none, body=bytes),
            Route("DELETE", f"{_DEKS}/{{subject}}", _key_not_found, none),
            Route("GET", f"{_DEKS}/{{subject}}/versions", _key_not_found, none),
            Route("GET", f"{_DEKS}/{{subject}}/versions/{{version}}", _key_not_found, none),
        )


async def _none(call: Call) -> Any:
    return []


async def _no_association(call: Call) -> Any:
    raise Problem(
        422,
        "Topics and subjects cannot be associated here: serializers find the subject of a topic by its name "
        "(a subject name strategy).",
        _INVALID_ASSOCIATION,
    )


async def _no_key(call: Call) -> Any:
    raise Problem(
        422,
        "No keys are kept here: this registry has no DEK registry, so rules of type ENCRYPT need another one.",
        _INVALID_KEY,
    )


async def _key_not_found(call: Call) -> Any:
    raise Problem(404, f"Key {call.path['name']} not found: no keys are kept here.", _KEY_NOT_FOUND)
