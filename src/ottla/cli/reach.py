"""Options that every tool shares which talks to a cluster, and the way from them to a Cluster."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
from typing import TYPE_CHECKING, Final

from ottla.cli.parser import Arguments, Option, UsageError

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.client.security import Security

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"

BOOTSTRAP: Final = Option(
    "--bootstrap",
    "-b",
    "--bootstrap-server",
    "--broker-list",
    value="HOST:PORT",
    help=f"Brokers to start from, separated by commas; else OTTLA_BOOTSTRAP, else {DEFAULT_BOOTSTRAP}.",
)
COMMAND_CONFIG: Final = Option(
    "--command-config",
    "--producer.config",
    "--consumer.config",
    "--admin.config",
    value="FILE",
    help="Kafka's client settings (security.protocol, ssl.* …) as a properties file; else OTTLA_COMMAND_CONFIG.",
)
TIMEOUT: Final = Option("--timeout", value="SECONDS", default="30", help="How long to try before giving up.")
OUTPUT: Final = Option("--output", value="FORM", choices=("table", "json"), default="table", help="Form of the output.")
JSON: Final = Option("--json", help="Short for --output json.")
REACH: Final = (BOOTSTRAP, COMMAND_CONFIG, TIMEOUT)
SHOW: Final = (*REACH, OUTPUT, JSON)


def output(arguments: Arguments) -> str:
    return "json" if arguments.flag("json") else arguments.text("output")


def cluster(arguments: Arguments) -> "Cluster":
    """Not connected yet: the first request does that."""
    from ottla.client.addresses import parse_bootstrap
    from ottla.client.blocking.cluster import Cluster

    given = client_settings(arguments)
    named = arguments.optional("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP")
    text = named or given.get("bootstrap.servers") or DEFAULT_BOOTSTRAP
    try:
        addresses = parse_bootstrap(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Cluster(
        addresses,
        client_id=given.get("client.id", "ottla-cli"),
        timeout_s=seconds(arguments.text("timeout")),
        security=_security(given),
    )


def client_settings(arguments: Arguments) -> dict[str, str]:
    """What the file of --command-config says, if there is one."""
    file = arguments.optional("command_config") or os.environ.get("OTTLA_COMMAND_CONFIG")
    if not file:
        return {}
    from pathlib import Path

    from ottla.cli.failures import Failure
    from ottla.client.security import SecurityRefused, settings_of

    try:
        return settings_of(Path(file))
    except SecurityRefused as error:
        raise Failure(str(error)) from error


def _security(given: dict[str, str]) -> "Security":
    from ottla.client.security import PLAINTEXT, SecurityRefused, security

    if not given:
        return PLAINTEXT
    from ottla.cli.failures import Failure

    try:
        return security(given)
    except SecurityRefused as error:
        raise Failure(str(error)) from error


def seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e6:  # neither nan nor for ever: every wait has a bound
        raise UsageError(f"--timeout {text}: a number of seconds is expected")
    return seconds


def settings(texts: list[str]) -> dict[str, str]:
    """`name=value` words into a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{text!r} is not a setting: NAME=VALUE is expected, such as retention.ms=86400000")
        found[name.strip()] = value.strip()
    return found
