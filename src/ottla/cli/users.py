"""`ottla users`: who may log in by SCRAM. Passwords are asked for and told to nobody."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from ottla.cli.output import Table, note, show
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, cluster, output

if TYPE_CHECKING:
    from ottla.client.users import NewCredential
    from ottla.metadata.scram import ScramMechanism
    from ottla.model.properties import Settings
    from ottla.protocol.messages import AlterUserScramCredentialsRequest

_DEFAULT_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_DEFAULT_ITERATIONS: Final = "4096"


def add(arguments: Arguments) -> int:
    name = arguments.text("name")
    _alter(arguments, new=_credentials(arguments, name))
    note(f"user {name} can log in by {' and '.join(_mechanism_names(arguments))}")
    return 0


def password(arguments: Arguments) -> int:
    """As `add`, for somebody who is there: a misspelt name must not make another user."""
    from ottla.cli.failures import Failure
    from ottla.client.users import describe_users
    from ottla.metadata.scram import SCRAM_BY_NAME

    name = arguments.text("name")
    with cluster(arguments) as server:
        there = describe_users(server, [name]).get(name)
    if not there:
        raise Failure(f"there is no user {name}\n  `ottla users add {name}` makes one")
    mechanisms = [SCRAM_BY_NAME[each.mechanism] for each in there]
    _alter(arguments, new=_credentials(arguments, name, mechanisms))
    note(f"user {name} has another password; who is logged in stays so until the login ends")
    return 0


def list_users(arguments: Arguments) -> int:
    from ottla.client.users import describe_users

    with cluster(arguments) as server:
        users = describe_users(server)
    table = Table("NAME", "MECHANISM", "ITERATIONS")
    for name in sorted(users):
        for credential in users[name]:
            table.add(name, credential.mechanism, credential.iterations)
    if not users and output(arguments) == "table":
        note("no users yet: `ottla users add NAME` makes one")
        return 0
    show(table, output(arguments))
    return 0


def remove(arguments: Arguments) -> int:
    from ottla.cli.failures import Failure
    from ottla.client.users import alter_users, describe_users
    from ottla.metadata.scram import SCRAM_BY_NAME

    name = arguments.text("name")
    with cluster(arguments) as server:
        there = describe_users(server, [name]).get(name)
        if not there:
            raise Failure(f"there is no user {name}\n  `ottla users list` shows who is there")
        alter_users(server, (), [(name, SCRAM_BY_NAME[each.mechanism]) for each in there])
    note(f"user {name} is removed; who is logged in stays so until the login ends")
    return 0


def hash_password(arguments: Arguments) -> int:
    from ottla.registry.doors.users_file import line

    name = arguments.text("name")
    try:
        print(line(name, _password(arguments, name), os.urandom(16)))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return 0


def _alter(arguments: Arguments, new: list[NewCredential]) -> None:
    from ottla.client.users import alter_users, alteration

    if arguments.has("data") or arguments.has("file"):
        for each in new:
            _alter_stopped(_settings(arguments), alteration([each]))
        return
    with cluster(arguments) as server:
        alter_users(server, new)


def _alter_stopped(settings: Settings, request: AlterUserScramCredentialsRequest) -> None:
    from ottla.cli.failures import Failure
    from ottla.client.users import check_alteration
    from ottla.node.node import StartFailed
    from ottla.node.offline import decide

    try:
        check_alteration(decide(settings, request))
    except StartFailed as error:
        raise Failure(str(error)) from error


def _settings(arguments: Arguments) -> Settings:
    """Of a node that is not running: its file, or what `ottla start --data DIR` would have."""
    from ottla.cli.failures import Failure
    from ottla.cli.node_files import node_settings_of
    from ottla.model.properties import Settings, SettingsError
    from ottla.model.properties.file import parse_properties

    try:
        if not arguments.has("file"):
            return Settings.defaults(os.path.abspath(arguments.text("data")))
        with open(arguments.text("file"), encoding="utf-8") as file:
            given = parse_properties(file.read())
        if arguments.has("data"):
            given["log.dirs"] = os.path.abspath(arguments.text("data"))
        return node_settings_of(given)
    except (SettingsError, ValueError) as error:
        raise Failure(f"{arguments.optional('file') or 'the settings'} cannot be used: {error}") from error


def _credentials(
    arguments: Arguments, name: str, mechanisms: list[ScramMechanism] | None = None
) -> list[NewCredential]:
    from ottla.client.users import NewCredential
    from ottla.metadata.scram import SCRAM_BY_NAME, new_salt

    chosen = mechanisms or [SCRAM_BY_NAME[each] for each in _mechanism_names(arguments)]
    iterations = arguments.number("iterations")
    secret = _password(arguments, name)
    return [NewCredential.of(name, secret, each, iterations, new_salt(os.urandom(17))) for each in chosen]


def _mechanism_names(arguments: Arguments) -> list[str]:
    names = [each.upper() for each in arguments.texts("mechanism")] or list(_DEFAULT_MECHANISMS)
    for each in names:
        if each not in _DEFAULT_MECHANISMS:
            raise UsageError(f"--mechanism {each}: {' or '.join(_DEFAULT_MECHANISMS)}")
    return names


def _password(arguments: Arguments, name: str) -> str:
    """Asked for twice at a terminal; else the first line of a file or of standard input."""
    from ottla.cli.failures import Failure

    path = arguments.optional("password_file")
    if path is not None:
        with open(path, encoding="utf-8") as file:
            secret = file.readline().rstrip("\n")
    elif sys.stdin.isatty():
        from getpass import getpass

        secret = getpass(f"password of {name}: ")
        if getpass("the same again: ") != secret:
            raise Failure("the two passwords differ; nothing was changed")
    else:
        secret = sys.stdin.readline().rstrip("\n")
    if not secret:
        raise Failure("an empty password is none; nothing was changed")
    return secret


_NAME: Final = Argument("NAME", help="The user.")
_PASSWORD_FILE: Final = Option(
    "--password-file",
    value="FILE",
    help="Its first line is the password; else it is asked for, or read from stdin.",
)
_ITERATIONS: Final = Option(
    "--iterations", value="N", number=True, default=_DEFAULT_ITERATIONS, help="Of SCRAM, 4096 to 16384. Default: 4096."
)

COMMANDS = (
    Command(
        "list",
        list_users,
        summary="Who can log in by SCRAM.",
        options=SHOW,
        examples=(("", "ottla users list"),),
    ),
    Command(
        "add",
        add,
        summary="Make a user, or give one another password.",
        details="""
The password is asked for. With --data, or a node's FILE, this works on the directory of a node that is not running: so
the first user comes into a cluster in which everybody has to log in. Only a node that is its quorum alone can.""",
        arguments=(_NAME, Argument("FILE", help="server.properties of a node that is not running.", required=False)),
        options=(
            Option(
                "--mechanism",
                value="NAME",
                many=True,
                help=f"{' or '.join(_DEFAULT_MECHANISMS)}. Default: both.",
            ),
            _ITERATIONS,
            _PASSWORD_FILE,
            Option("--data", "-d", value="DIR", help="Data directory of a node that is not running."),
            *REACH,
        ),
        examples=(
            ("By a running cluster", "ottla users add alice --command-config admin.properties"),
            ("The first one", "ottla users add admin --data ./ottla-data"),
        ),
    ),
    Command(
        "password",
        password,
        summary="Give a user another password.",
        arguments=(_NAME,),
        options=(_ITERATIONS, _PASSWORD_FILE, *REACH),
        examples=(("", "ottla users password alice"),),
    ),
    Command(
        "remove",
        remove,
        summary="Let a user log in no longer.",
        arguments=(_NAME,),
        options=REACH,
        examples=(("", "ottla users remove alice"),),
        aliases=("delete",),
    ),
    Command(
        "hash",
        hash_password,
        summary="Write a line for registry.users.file, by which a user of the schema registry is known.",
        details="""
For a registry whose callers are no users of the cluster, as nobody logs in there. Asks no cluster.""",
        arguments=(_NAME,),
        options=(_PASSWORD_FILE,),
        examples=(("", "ottla users hash alice >> registry.users"),),
    ),
)
