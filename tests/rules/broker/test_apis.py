"""The rows of the API table, and what stands behind them: handlers, deciders, refusals, the page that tells of them."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from ottla.broker.front.dispatch import Routes
from ottla.controller.machine import Controller
from ottla.model import permissions
from ottla.model.errors import Errors
from ottla.model.permissions import Permission, Resource
from ottla.protocol import messages, refusals
from ottla.protocol.apis import API, Api, Asks, Decider, Entrance, ListenerType, OfCluster, decided_by, entrances

ROOT = Path(__file__).parents[3]
HANDLERS = ROOT / "src" / "ottla" / "broker" / "handlers"
ENTRANCES = [entrance for kind in ListenerType for entrance in entrances(kind)]
PERMISSIONS = {name: value for name, value in vars(permissions).items() if isinstance(value, Permission)}
NEEDS_NOTHING = (
    "ApiVersions",
    "DescribeCluster",
    "ExpireDelegationToken",
    "RenewDelegationToken",
    "SaslAuthenticate",
    "SaslHandshake",
)


def named(entrance: Entrance) -> str:
    return f"{entrance.handler}-{type(entrance.needs).__name__}"


def asked_by(module: str) -> set[Permission]:
    """The permissions that a handler names in its questions."""
    names = {node.id for node in ast.walk(tree_of(module)) if isinstance(node, ast.Name)}
    return {PERMISSIONS[name] for name in names & set(PERMISSIONS)}


def asked_for(module: str) -> set[Permission]:
    """And those that what it shares with other handlers asks for it."""
    imported = [node.module or "" for node in ast.walk(tree_of(module)) if isinstance(node, ast.ImportFrom)]
    shared = [name.rpartition(".")[2] for name in imported if name.startswith("ottla.broker.handlers.")]
    return asked_by(module).union(*(asked_by(name) for name in shared if not re.match(r"k\d\d_", name)))


def tree_of(module: str) -> ast.Module:
    return ast.parse((HANDLERS / f"{module}.py").read_text())


@pytest.mark.parametrize("entrance", ENTRANCES, ids=named)
def test_a_handlers_file_is_named_after_its_api(entrance: Entrance) -> None:
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", entrance.api.name).lower()
    assert entrance.handler.startswith(f"k{entrance.api.key:02}_{snake}")


def test_every_handler_is_behind_a_row() -> None:
    assert {path.stem for path in HANDLERS.glob("k*.py")} == {entrance.handler for entrance in ENTRANCES}


@pytest.mark.parametrize("entrance", ENTRANCES, ids=named)
def test_a_handlers_head_tells_the_versions_it_speaks(entrance: Entrance) -> None:
    low, high = entrance.api.min_version, entrance.max_version
    joined = "and" if high - low == 1 else "to"
    versions = f"Version {low} only." if low == high else f"Versions {low} {joined} {high}."
    assert re.search(rf"^{versions}", ast.get_docstring(tree_of(entrance.handler)) or "", re.MULTILINE)


@pytest.mark.parametrize("entrance", ENTRANCES, ids=named)
def test_either_the_session_asks_or_the_handler_does_and_the_row_says_which(entrance: Entrance) -> None:
    match entrance.needs:
        case OfCluster(any_of):
            assert any_of
            assert all(permission.resource is Resource.CLUSTER for permission in any_of)
            assert asked_for(entrance.handler) == set()
        case Asks(asked):
            assert asked_by(entrance.handler) <= set(asked) <= asked_for(entrance.handler)
        case None:
            assert entrance.api.name in NEEDS_NOTHING
            assert asked_for(entrance.handler) == set()


@pytest.mark.parametrize("kind", ListenerType)
def test_a_listener_advertises_exactly_what_it_serves(kind: ListenerType) -> None:
    routes = Routes(kind)
    for key, low, high in routes.served():
        route = routes.get(key)
        assert route is not None
        assert (route.min_version, route.max_version) == (low, high)
        assert all(version in route.decoders for version in range(low, high + 1))


@pytest.mark.parametrize("entrance", ENTRANCES, ids=named)
def test_nothing_is_served_where_kafka_does_not_serve_it(entrance: Entrance) -> None:
    assert entrance.api.served is not None
    assert {kind.value for kind in entrance.api.served.on} <= set(entrance.api.listeners)


@pytest.mark.parametrize("api", list(decided_by(Decider.CONTROLLER)), ids=lambda api: api.name)
def test_a_decider_takes_the_request_of_its_row_and_gives_its_response(api: Api) -> None:
    hints = get_type_hints(getattr(Controller, api.function), vars(importlib.import_module("ottla.controller.machine")))
    assert hints["command"] is messages.request_class(api.key)
    assert hints["return"].__args__ == (messages.response_class(api.key),)


def test_what_a_broker_passes_on_somebody_else_decides() -> None:
    """KIP-590: Kafka's forwardable APIs, as far as they are served here. 67 a broker says for itself."""
    forwarded = {key for key, api in API.items() if api.served is not None and api.served.forwarded}
    assert forwarded == {19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81}
    assert all(api.served.decider for api in API.values() if api.served is not None and api.served.forwarded)


def test_the_page_of_the_protocol_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_protocol_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("key", refusals._BY_ITEM)
def test_a_refusal_by_item_is_made_for_the_request_of_its_key(key: int) -> None:
    made = refusals._BY_ITEM[key]
    assert get_type_hints(made)["request"] is messages.request_class(key)
    assert list(inspect.signature(made).parameters) == ["request", "error", "text"]


@pytest.mark.parametrize("entrance", [e for e in ENTRANCES if isinstance(e.needs, OfCluster)], ids=named)
def test_what_the_session_refuses_has_a_place_for_the_error(entrance: Entrance) -> None:
    request = messages.request_class(entrance.api.key)()
    refused = refusals.refused(request, Errors.CLUSTER_AUTHORIZATION_FAILED)
    assert isinstance(refused, messages.response_class(entrance.api.key))


def test_a_refusal_of_all_that_was_asked_for_is_seen_in_its_items_whatever_their_list_is_called() -> None:
    """Else a client is told of a controller that moved, where its broker should ask the next one."""
    quotas = messages.AlterClientQuotasResponse(
        entries=[messages.AlterClientQuotasResponse.EntryData(error_code=Errors.NOT_CONTROLLER)]
    )
    assert refusals.is_refusal(quotas, Errors.NOT_CONTROLLER)
    assert not refusals.is_refusal(quotas, Errors.REQUEST_TIMED_OUT)
