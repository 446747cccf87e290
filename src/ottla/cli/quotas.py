"""`ottla quotas`: how much each user, client and address may use; and which of the limits applies to whom."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.cli.output import Table, show
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, client_settings, cluster, output, settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.quotas import Entity

DEFAULT: Final = "<default>"
_UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def list_quotas(arguments: Arguments) -> int:
    from ottla.client import quotas

    with cluster(arguments) as server:
        found = quotas.describe(server)
    table = Table("USER", "CLIENT ID", "IP", "QUOTA", "VALUE")
    for entity, values in sorted(found.items(), key=str):
        parts = {kind: DEFAULT if name is None else name for kind, name in entity}
        for key, value in sorted(values.items()):
            table.add(parts.get("user"), parts.get("client-id"), parts.get("ip"), key, _number_text(value))
    show(table, output(arguments))
    return 0


def set_quotas(arguments: Arguments) -> int:
    from ottla.client import quotas

    entity = _entity(arguments)
    values = {key: _number(key, text) for key, text in settings(arguments.texts("quota")).items()}
    with cluster(arguments) as server:
        quotas.alter(server, entity, values)
    told = ", ".join(f"{key}={_number_text(value)}" for key, value in values.items())
    print(f"{_told(entity)}: {told}")
    return 0


def remove(arguments: Arguments) -> int:
    from ottla.cli.failures import Failure
    from ottla.client import quotas

    entity, keys = _entity(arguments), arguments.texts("key")
    with cluster(arguments) as server:
        current = quotas.describe(server).get(entity, {})
        missing = [key for key in keys if key not in current]
        if missing or not current:
            what = ", ".join(missing) if missing else "quotas"
            raise Failure(f"no {what} set for {_told(entity)} (`ottla quotas list` shows what is)")
        gone = dict.fromkeys(keys or current)
        quotas.alter(server, entity, gone)
    print(f"{_told(entity)}: {', '.join(gone)} removed")
    return 0


def show_applying(arguments: Arguments) -> int:
    """What counts for one client, by Kafka's eight levels, and how much of it is used if a node tells."""
    from ottla.broker.quotas.levels import applied
    from ottla.client import quotas
    from ottla.model.quotas import OF_CLIENTS

    user, client_id = arguments.optional("user") or "ANONYMOUS", arguments.optional("client") or ""
    with cluster(arguments) as server:
        found = quotas.describe(server)
    used = _used(arguments.texts("metrics"), client_settings(arguments))
    table = Table("QUOTA", "VALUE", "USED NOW", "SET FOR", "COUNTED FOR")
    for key in OF_CLIENTS:
        level = applied({entity: values[key] for entity, values in found.items() if key in values}, user, client_id)
        if level is None:
            table.add(key, "unlimited", None, None, None)
            continue
        at = used.get((_RESOURCES[key], level.bucket.user or "", level.bucket.client_id or ""))
        counted = " of ".join(
            [f"client {client_id!r}" if level.bucket.client_id is not None else "all clients"]
            + ([f"user {user}"] if level.bucket.user is not None else [])
        )
        table.add(key, _number_text(level.bound), None if at is None else f"{at:.1f}", _told(level.entity), counted)
    show(table, output(arguments))
    return 0


_RESOURCES: Final = {
    "producer_byte_rate": "Produce",
    "consumer_byte_rate": "Fetch",
    "request_percentage": "Request",
    "controller_mutation_rate": "ControllerMutation",
}
_RATES: Final = ("kafka_server_quota_byte_rate", "kafka_server_quota_request_time")


def _used(addresses: list[str], settings: Mapping[str, str]) -> dict[tuple[str, str, str], float]:
    """By resource, user and client id, over all the nodes that were asked. Changes of the cluster have no rate, but
    tokens left, which only the active controller counts."""
    found: dict[tuple[str, str, str], float] = {}
    for address in addresses:
        for line in _page(address, settings).splitlines():
            name, opened, rest = line.partition("{")
            marks, closed, value = rest.rpartition("} ")
            if opened and closed and name in _RATES:
                parts = _labels(marks)
                key = (parts["resource"], parts["user"], parts["clientId"])
                found[key] = found.get(key, 0.0) + float(value)
    return found


def _page(address: str, settings: Mapping[str, str]) -> str:
    from urllib.error import HTTPError

    from ottla.cli.failures import Failure
    from ottla.cli.pages import page

    url = address if "://" in address else f"http://{address}"
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--metrics {address}: an address of http.listeners is expected, as http://127.0.0.1:9404")
    try:
        return page(f"{url.removesuffix('/').removesuffix('/metrics')}/metrics", settings, 10)
    except HTTPError as error:
        who = ". --command-config FILE says who asks (sasl.jaas.config)" if error.code in (401, 403) else ""
        raise Failure(f"{url} does not tell what is used: {error}{who}") from error
    except (OSError, ValueError) as error:
        raise Failure(f"{url} does not tell what is used: {error}. A node does by http.listeners.") from error


def _labels(text: str) -> dict[str, str]:
    import re

    pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', text)
    return {name: re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), value) for name, value in pairs}


def _entity(arguments: Arguments) -> Entity:
    from ottla.model.quotas import CLIENT_ID, IP, USER

    parts: list[tuple[str, str | None]] = []
    for kind, word in ((CLIENT_ID, "client"), (IP, "ip"), (USER, "user")):
        name, is_default = arguments.optional(word), arguments.flag(f"default_{word}")
        if name is not None and is_default:
            raise UsageError(f"--{word} and --default-{word}: one of the two")
        if name is not None or is_default:
            parts.append((kind, name))
    if not parts:
        raise UsageError("whose quota? Say --user NAME, --client ID, both, or --ip ADDRESS (or --default-user …)")
    return tuple(parts)


def _told(entity: Entity) -> str:
    words = {"user": "user", "client-id": "client", "ip": "ip"}
    parts = [f"default {words[kind]}" if name is None else f"{words[kind]} {name}" for kind, name in entity]
    return ", ".join(reversed(parts))


def _number(key: str, text: str) -> float:
    from ottla.model.quotas import OF_ADDRESSES, OF_CLIENTS

    if key not in (*OF_CLIENTS, *OF_ADDRESSES):
        raise UsageError(f"{key}: there are the quotas {', '.join((*OF_CLIENTS, *OF_ADDRESSES))}")
    unit = next((unit for unit in _UNITS if text.endswith(unit)), "") if key.endswith("_byte_rate") else ""
    try:
        return float(text.removesuffix(unit)) * _UNITS.get(unit, 1)
    except ValueError:
        example = ", such as 1048576 or 1MiB" if key.endswith("_byte_rate") else ""
        raise UsageError(f"{key}={text}: a number is expected{example}") from None


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


_WHO: Final = (
    Option("--user", value="NAME", help="A user, by the name of its principal; without login that is ANONYMOUS."),
    Option("--client", "--client-id", value="ID", help="A client.id; with --user that client of that user alone."),
    Option("--ip", value="ADDRESS", help="An address that connections come from."),
    Option("--default-user", help="Every user that has no quota of its own, each by itself."),
    Option("--default-client", help="Every client.id that has no quota of its own, each by itself."),
    Option("--default-ip", help="Every address that has no quota of its own, each by itself."),
)
_KINDS: Final = """
producer_byte_rate, consumer_byte_rate   bytes a second on each broker; 1MiB is understood
request_percentage                       of the time of each node; 100 is all of it
controller_mutation_rate                 partitions created and deleted a second
connection_creation_rate                 new connections a second, of an ip"""

COMMANDS = (
    Command(
        "list",
        list_quotas,
        summary="All quotas that are set.",
        options=SHOW,
        examples=(("", "ottla quotas list"),),
    ),
    Command(
        "set",
        set_quotas,
        summary="Set quotas of a user, a client, both together, or an address.",
        details=_KINDS,
        arguments=(Argument("QUOTA", help="NAME=VALUE, such as producer_byte_rate=1MiB.", many=True),),
        options=(*_WHO, *REACH),
        examples=(
            ("", "ottla quotas set --user alice producer_byte_rate=1MiB consumer_byte_rate=2MiB"),
            (
                "each client of each user by itself",
                "ottla quotas set --default-user --default-client request_percentage=20",
            ),
            ("", "ottla quotas set --ip 10.1.2.3 connection_creation_rate=10"),
        ),
    ),
    Command(
        "remove",
        remove,
        summary="Remove quotas: those that are named, or all of that user, client or address.",
        arguments=(Argument("KEY", help="Such as producer_byte_rate.", required=False, many=True),),
        options=(*_WHO, *REACH),
        examples=(("", "ottla quotas remove --user alice producer_byte_rate"),),
        aliases=("delete",),
    ),
    Command(
        "show",
        show_applying,
        summary="What applies to one client: the value, where it was set, with whom it is shared, how much is used.",
        options=(
            Option("--user", value="NAME", help="Else ANONYMOUS, who comes without login."),
            Option("--client", "--client-id", value="ID", help="Its client.id."),
            Option(
                "--metrics",
                value="URL",
                many=True,
                help="An address of http.listeners, of each broker: tells what is used now.",
            ),
            *SHOW,
        ),
        examples=(("", "ottla quotas show --user alice --client app-1 --metrics http://127.0.0.1:9404"),),
    ),
)
