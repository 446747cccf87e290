"""The OpenAPI document is made of the routes."""

import msgspec
import pytest

from ottla.http.answers import ACCEPTED, NO_CONTENT, Answer
from ottla.http.call import Call
from ottla.http.media import PLAIN
from ottla.http.openapi import document
from ottla.http.routes import Route


class NewOrder(msgspec.Struct):
    item: str


async def nothing(call: Call) -> None: ...


def test_a_route_is_described_with_its_parts_parameters_body_and_errors() -> None:
    route = Route("PUT", "/orders/{id}", nothing, "Changes an order", body=NewOrder, query={"dry": "only look"})
    found = document("orders", "1", [route], PLAIN, {"type": "object"})
    assert found["paths"]["/orders/{id}"]["put"] == {
        "summary": "Changes an order",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "dry", "in": "query", "description": "only look", "schema": {"type": "string"}},
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewOrder"}}},
        },
        "responses": {
            "200": {"description": "done", "content": {}},
            "default": {
                "description": "refused",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    assert sorted(found["components"]["schemas"]) == ["NewOrder", "Problem"]


@pytest.mark.parametrize("reply", [NO_CONTENT, ACCEPTED])
def test_an_answer_without_a_body_is_described_as_such(reply: Answer) -> None:
    route = Route("DELETE", "/orders/{id}", nothing, "Forgets an order", reply=reply)
    found = document("orders", "1", [route], PLAIN, {"type": "object"})["paths"]["/orders/{id}"]["delete"]
    assert found["responses"].keys() == {str(reply.status), "default"}
    assert found["responses"][str(reply.status)] == {"description": "done"}
