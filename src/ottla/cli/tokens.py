"""`ottla tokens`: delegation tokens, with which somebody else acts as you for a while (KIP-48)."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.cli.output import Table, note, show, time_text
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, cluster, output

if TYPE_CHECKING:
    from ottla.client.tokens import Token


def create(arguments: Arguments) -> int:
    from ottla.client.tokens import create_token

    renewers = [_principal(each) for each in arguments.texts("renewer")]
    owner = arguments.optional("owner")
    with cluster(arguments) as server:
        made = create_token(
            server, renewers, _period(arguments, "lifetime"), None if owner is None else _principal(owner)
        )
    print(f"id    {made.id}\nhmac  {_text(made.hmac)}")
    note(f"acts as {made.owner} until {time_text(made.expires_ms)}; renewed, until {time_text(made.ends_ms)}")
    note('a client logs in by SCRAM with it: username="<id>" password="<hmac>" tokenauth="true" in sasl.jaas.config')
    return 0


def list_tokens(arguments: Arguments) -> int:
    from ottla.client.tokens import describe_tokens

    owners = [_principal(each) for each in arguments.texts("owner")]
    with cluster(arguments) as server:
        tokens = describe_tokens(server, owners or None)
    if not tokens and output(arguments) == "table":
        note("no tokens that you may see")
        return 0
    show(_table(tokens), output(arguments))
    return 0


def renew(arguments: Arguments) -> int:
    from ottla.client.tokens import renew_token

    with cluster(arguments) as server:
        expires = renew_token(server, _hmac(arguments), _period(arguments, "period"))
    note(f"the token lives until {time_text(expires)}")
    return 0


def expire(arguments: Arguments) -> int:
    from ottla.client.tokens import expire_token

    with cluster(arguments) as server:
        expires = expire_token(server, _hmac(arguments), _period(arguments, "period"))
    note("the token has ended" if not arguments.has("period") else f"the token lives until {time_text(expires)}")
    return 0


def _table(tokens: list[Token]) -> Table:
    """Without secrets: whoever may see a token need not show it around."""
    table = Table("ID", "OWNER", "RENEWERS", "EXPIRES", "ENDS")
    for token in tokens:
        table.add(
            token.id, token.owner, ",".join(token.renewers), time_text(token.expires_ms), time_text(token.ends_ms)
        )
    return table


def _principal(text: str) -> str:
    """`alice` is meant as User:alice."""
    return text if ":" in text else f"User:{text}"


def _period(arguments: Arguments, key: str) -> int:
    text = arguments.optional(key)
    if text is None:
        return -1
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e10:
        raise UsageError(f"--{key} {text}: a number of seconds is expected")
    return int(seconds * 1000)


def _hmac(arguments: Arguments) -> bytes:
    from base64 import b64decode
    from binascii import Error

    try:
        return b64decode(arguments.text("hmac"), validate=True)
    except Error as error:
        raise UsageError("HMAC: what `ottla tokens create` has printed is expected") from error


def _text(hmac: bytes) -> str:
    from base64 import b64encode

    return b64encode(hmac).decode()


_HMAC: Final = Argument("HMAC", help="The secret of the token.", flags=("--hmac",))
_PERIOD: Final = Option("--period", value="SECONDS", help="From now.")

COMMANDS = (
    Command(
        "create",
        create,
        summary="Make a token and print it; it is shown this once.",
        options=(
            Option("--renewer", value="USER", many=True, help="Somebody who may renew and end it, too."),
            Option("--owner", value="USER", help="For somebody else (needs CREATE_TOKENS on that user)."),
            Option("--lifetime", value="SECONDS", help="Its longest life. Default: what the cluster allows."),
            *REACH,
        ),
        examples=(("", "ottla tokens create --renewer batch --command-config alice.properties"),),
    ),
    Command(
        "list",
        list_tokens,
        summary="Tokens that you own, asked for, may renew, or may see.",
        options=(Option("--owner", value="USER", many=True, help="Of these only."), *SHOW),
        examples=(("", "ottla tokens list --command-config alice.properties"),),
        aliases=("describe",),
    ),
    Command(
        "renew",
        renew,
        summary="Let a token live longer.",
        arguments=(_HMAC,),
        options=(_PERIOD, *REACH),
        examples=(("", "ottla tokens renew HMAC --period 3600"),),
    ),
    Command(
        "expire",
        expire,
        summary="End a token: now, or after a while.",
        arguments=(_HMAC,),
        options=(_PERIOD, *REACH),
        examples=(("", "ottla tokens expire HMAC"),),
    ),
)
