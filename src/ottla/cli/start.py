"""`ottla start`: from words and perhaps a file to the settings of a node. The node itself is `ottla.node`."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
from typing import TYPE_CHECKING, Final

from ottla.cli.listening import DEFAULT_PORT, listeners, metrics_listener, platform_listeners
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import settings as name_value_pairs

if TYPE_CHECKING:
    from ottla.cli.secure import Secured
    from ottla.model.properties import Settings

DEFAULT_DATA: Final = "./ottla-data"
DEFAULT_CLUSTER_DATA: Final = "./ottla-cluster"
"""A directory of its own: a single node may have left its data in the other."""
DEFAULT_HOST: Final = "127.0.0.1"
_MOST_NODES: Final = 9


def start(arguments: Arguments) -> int:
    from ottla.cli.failures import Failure
    from ottla.model.properties import SettingsError

    path = arguments.optional("file")
    count = arguments.optional_number("nodes")
    try:
        if count is not None and count != 1:
            return _start_several(arguments, count)
        if arguments.flag("secure"):
            settings = _secure_settings(arguments, path)
        else:
            settings = node_settings(arguments) if path is None else file_settings(arguments, path)
    except SettingsError as error:
        where = path or "the settings"
        problems = "\n".join(f"  {problem}" for problem in error.problems)
        raise Failure(f"{where} cannot be used:\n{problems}") from error
    from ottla.node.process import run

    return run(settings)


def _start_several(arguments: Arguments, count: int) -> int:
    from ottla.cli.nodes import check_data, check_ports, cluster_of, plan, run
    from ottla.model.properties import Settings

    if arguments.optional("file") is not None:
        raise UsageError("--nodes: a file describes one node; start one process for each file")
    if not 1 <= count <= _MOST_NODES:
        raise UsageError(f"--nodes {count}: 1 to {_MOST_NODES}")
    port = arguments.optional_number("port")
    data = os.path.abspath(arguments.optional("data") or DEFAULT_CLUSTER_DATA)
    check_data(data, count)
    host = arguments.optional("host") or DEFAULT_HOST
    overrides = {"cluster.id": cluster_of(data, count), **_overrides(arguments)}
    secured = _secured(arguments, data, host)
    plans = plan(
        count,
        host,
        DEFAULT_PORT if port is None else port,
        data,
        overrides,
        _platform(arguments, port, secured),
        secured,
    )
    Settings.defaults(plans[0].data, **plans[0].settings)  # what is wrong with them is told once, not by every node
    check_ports(plans)
    return run(plans, secured)


def _secured(arguments: Arguments, data: str, host: str) -> "Secured | None":
    if not arguments.flag("secure"):
        if os.path.exists(f"{data}.security"):
            from ottla.cli.secure import check_unsecured

            check_unsecured(data)
        return None
    from ottla.cli.secure import prepared

    return prepared(data, () if host in ("0.0.0.0", "::", "") else (host,))


def _secure_settings(arguments: Arguments, path: str | None) -> "Settings":
    """One node with TLS, logins and ACLs; its administrator is made, and told of, before its first start."""
    from ottla.cli.secure import LISTENER, make_admin
    from ottla.model.properties import Settings

    if path is not None:
        raise UsageError("--secure: a file says itself what protects its node; docs/SECURITY.md has the lines")
    data = os.path.abspath(arguments.optional("data") or DEFAULT_DATA)
    host, port = arguments.optional("host") or DEFAULT_HOST, arguments.optional_number("port")
    port = DEFAULT_PORT if port is None else port
    if not 1 <= port <= 65534:
        raise UsageError(f"--port {port}: 1 to 65534 with --secure; the controller takes the next one")
    secured = _secured(arguments, data, host)
    assert secured is not None
    settings = Settings.defaults(
        data,
        **{
            "http.listeners": metrics_listener(port),
            **_platform(arguments, port, secured),
            **_listeners(host, port, LISTENER),
            **secured.settings,
            **_overrides(arguments),
        },
    )
    told = make_admin(secured, settings, f"{'localhost' if host == DEFAULT_HOST else host}:{port}")
    if told:
        from ottla.runtime.standard_streams import announce

        announce(told)
    return settings


def node_settings(arguments: Arguments) -> "Settings":
    """Without a file: one node that does everything, on loopback unless told otherwise."""
    from ottla.model.properties import Settings

    data = arguments.optional("data") or DEFAULT_DATA
    _secured(arguments, os.path.abspath(data), DEFAULT_HOST)
    if os.path.exists(f"{data}/node-1/meta.properties"):
        from ottla.cli.failures import Failure
        from ottla.cli.nodes import nodes_in

        again = f"start it with --nodes {nodes_in(data)} --data {data}"
        raise Failure(f"{data} holds a cluster of several nodes: {again}, or name another --data")
    port = arguments.optional_number("port")
    host = arguments.optional("host") or DEFAULT_HOST
    given = {
        "http.listeners": metrics_listener(DEFAULT_PORT if port is None else port),
        **_platform(arguments, port, None),
    }
    if port is not None or host != DEFAULT_HOST:
        given.update(_listeners(host, DEFAULT_PORT if port is None else port))
    given.update(_overrides(arguments))
    return Settings.defaults(os.path.abspath(data), **given)


def _platform(arguments: Arguments, port: int | None, secured: "Secured | None") -> dict[str, str]:
    """What runs beside the broker; nothing with `--only kafka`."""
    only = arguments.optional("only")
    if only not in (None, "kafka"):
        raise UsageError(f"--only {only}: kafka is what can be started alone this way")
    return {} if only else platform_listeners(DEFAULT_PORT if port is None else port, secured=secured is not None)


def _listeners(host: str, port: int, name: str = "PLAINTEXT") -> dict[str, str]:
    if not 0 <= port <= 65534:
        raise UsageError(f"--port {port}: 0 (any free port) to 65534; the controller takes the next one")
    controller = port + 1 if port else 0
    return {
        **listeners(host, port, controller, name),
        "controller.quorum.voters": f"1@127.0.0.1:{controller or 9093}",
    }


def file_settings(arguments: Arguments, path: str) -> "Settings":
    """Kafka's server.properties as it is; --override wins over the file, as with kafka-server-start."""
    from ottla.cli.node_files import node_settings_of
    from ottla.model.properties.file import parse_properties

    for flag in ("port", "host"):
        if arguments.has(flag):
            raise UsageError(f"--{flag}: {path} says where to listen; change it there or with --override listeners=...")
    with open(path, "rb") as file:
        content = file.read()
    try:
        given = parse_properties(_text(content))
    except ValueError as error:
        from ottla.model.properties import SettingsError

        raise SettingsError([str(error)]) from error
    if arguments.has("data"):
        given["log.dirs"] = os.path.abspath(arguments.text("data"))
    given.update(_overrides(arguments))
    return node_settings_of(given)


def _overrides(arguments: Arguments) -> dict[str, str]:
    given = name_value_pairs(arguments.texts("override"))
    for option, name in (("log_level", "ottla.log.level"), ("log_format", "ottla.log.format")):
        if arguments.has(option):
            given[name] = arguments.text(option)
    return given


def _text(content: bytes) -> str:
    """Java reads these files as ISO 8859-1, people write them in UTF-8: what is not the one is the other."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("iso-8859-1")


COMMANDS = (
    Command(
        "",
        start,
        summary="Start a node. Ctrl-C or SIGTERM stops it cleanly.",
        details="""
Without a file one node starts that is broker and controller, on loopback, and creates its data directory when there is
none; http://127.0.0.1:9404 has its /metrics, /healthz, /readyz and /version, http://127.0.0.1:8081 is a schema
registry, http://127.0.0.1:8083 a Connect worker and http://127.0.0.1:8088 a SQL server, in a process of their own that
comes with the first request. These ports move with --port (9192 has 9504, 8181, 8183 and 8188);
-o http.listeners=http://HOST:PORT, -o registry.listeners=..., -o connect.listeners=... and -o sql.listeners=... choose
others.
With a file, what the file says is what happens; Kafka's server.properties is taken as it is.
A new data directory is formatted by itself; cluster.id may be given as a setting, else one is made. Nodes whose files
name the same quorum (controller.quorum.voters, or controller.quorum.bootstrap.servers) form one cluster.""",
        arguments=(Argument("FILE", help="Kafka's server.properties.", required=False),),
        options=(
            Option(
                "--data",
                "-d",
                value="DIR",
                help=f"Data directory. Default: {DEFAULT_DATA} (with --nodes: {DEFAULT_CLUSTER_DATA}), or the file's "
                "log.dirs.",
            ),
            Option(
                "--port",
                value="N",
                number=True,
                help=f"Port for clients. Default: {DEFAULT_PORT}. The controller takes the next.",
            ),
            Option(
                "--host", value="ADDRESS", help=f"Address to listen on. Default: {DEFAULT_HOST}: this machine only."
            ),
            Option(
                "--nodes",
                value="N",
                number=True,
                help="Start a cluster of N nodes on this machine, each a process; ports and directories follow on.",
            ),
            Option(
                "--secure",
                help="TLS, logins and ACLs, with one administrator: certificates and his password are made by the "
                "first start, and told once. The schema registry, Connect and SQL are for the cluster's users too, by "
                "https.",
            ),
            Option(
                "--only",
                value="WHAT",
                help="kafka: the broker alone, without registry, Connect and SQL. A file starts what it names.",
            ),
            Option(
                "--log-level",
                value="LEVEL",
                help="FATAL, ERROR, WARN, INFO, DEBUG or TRACE. Default: INFO, or the file's ottla.log.level.",
            ),
            Option(
                "--log-format",
                value="FORMAT",
                help="text or json: one object a line. Default: text, or the file's ottla.log.format.",
            ),
            Option("--override", "-o", value="NAME=VALUE", many=True, help="A setting, as in server.properties."),
        ),
        examples=(
            ("A node on 127.0.0.1:9092, data in ./ottla-data", "ottla start"),
            ("Another one beside it", "ottla start --port 9192 --data /tmp/second"),
            ("Three nodes that replicate to each other, data in ./ottla-cluster", "ottla start --nodes 3"),
            ("For the network, with six partitions per new topic", "ottla start --host 0.0.0.0 -o num.partitions=6"),
            ("With TLS, logins, ACLs and an administrator", "ottla start --secure"),
            ("As Kafka was configured", "ottla start /etc/kafka/server.properties"),
        ),
    ),
)
