"""`ottla acls`: who may do what. List and change the entries, and ask why.

Nothing is changed by default: `allow`, `deny` and `remove` show what they would do until they are given --execute.
"""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.cli.output import Json, Table, counted, note, show, show_json
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import REACH, SHOW, cluster, output

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster
    from ottla.model.acls import Acl, PermissionType
    from ottla.security.acls import Rights, Rules, Verdict
    from ottla.security.words import Expectation, Named, Wish

OK: Final = 0
FAILED: Final = 1
_NEAR: Final = 3
"""Entries that nearly fit, as many as are worth reading."""

T = TypeVar("T")


def _understood(read: Callable[[], T]) -> T:
    from ottla.security.words import BadWords

    try:
        return read()
    except BadWords as error:
        raise UsageError(str(error)) from error


def _host(arguments: Arguments) -> str:
    from ottla.security.hosts import as_java

    return as_java(arguments.optional("host") or "*")


def _all(server: Cluster) -> list[Acl]:
    from ottla.client.acls import describe_acls
    from ottla.model.acls import AclFilter

    return describe_acls(server, AclFilter())


def _shown(acls: Iterable[Acl], form: str) -> None:
    from ottla.security.words import operation_text, permission_text, resource_text

    table = Table("RESOURCE", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")
    for acl in sorted(acls):
        table.add(
            resource_text(acl), acl.principal, acl.host, operation_text(acl.operation), permission_text(acl.permission)
        )
    show(table, form)


# ---- list


def list_acls(arguments: Arguments) -> int:
    from ottla.security import words

    user, about = arguments.optional("user"), arguments.optional("resource")
    who = None if user is None else _understood(lambda: words.principal(user))
    on = None if about is None else _understood(lambda: words.resource(about))
    with cluster(arguments) as server:
        found = _all(server)
    if who is not None:
        found = [acl for acl in found if acl.principal == who]
    if on is not None:
        found = [acl for acl in found if _covers(acl, on)]
    _shown(found, output(arguments))
    return OK


def _covers(acl: Acl, on: Named) -> bool:
    """An entry about what was named: about all of it or, for a pattern, as it is written."""
    from ottla.model.acls import Pattern

    if acl.resource != on.resource:
        return False
    if on.pattern is Pattern.PREFIXED or on.name == "*":
        return (acl.name, acl.pattern) == (on.name, on.pattern)
    return acl.covers(on.name)


# ---- allow, deny, remove


def _wishes(arguments: Arguments) -> tuple[str, list[Wish]]:
    from ottla.security import words

    who = _understood(lambda: words.principal(arguments.text("user")))
    wanted = _understood(
        lambda: words.wishes(
            arguments.text("what"),
            arguments.texts("resource"),
            group=arguments.optional("group"),
            transactional_id=arguments.optional("transactional_id"),
        )
    )
    return who, wanted


def allow(arguments: Arguments) -> int:
    from ottla.model.acls import PermissionType

    return _add(arguments, PermissionType.ALLOW)


def deny(arguments: Arguments) -> int:
    from ottla.model.acls import PermissionType

    return _add(arguments, PermissionType.DENY)


def _add(arguments: Arguments, permission: PermissionType) -> int:
    from ottla.client.acls import create_acls
    from ottla.security.words import acls, sentence

    who, wanted = _wishes(arguments)
    asked = acls(who, wanted, permission, _host(arguments))
    with cluster(arguments) as server:
        there = set(_all(server))
        new = [acl for acl in asked if acl not in there]
        for acl in asked:
            print(f"{'+' if acl in new else ' '} {sentence(acl)}{'' if acl in new else '  (is there already)'}")
        if not new:
            return OK
        if not arguments.flag("execute"):
            note("Nothing was changed. Add --execute to do it.")
            return OK
        failures = [each for each in create_acls(server, new) if each is not None]
    for failure in failures:
        note(f"ottla: {failure}")
    return FAILED if failures else OK


def remove(arguments: Arguments) -> int:
    from ottla.client.acls import delete_acls
    from ottla.model.acls import AclFilter
    from ottla.security.words import sentence

    with cluster(arguments) as server:
        gone = _to_remove(arguments, _all(server))
        for acl in gone:
            print(f"- {sentence(acl)}")
        if not gone:
            note("There is no such entry.")
            return FAILED
        if not arguments.flag("execute"):
            note("Nothing was changed. Add --execute to do it.")
            return OK
        delete_acls(server, [AclFilter(*acl) for acl in gone])
    return OK


def _to_remove(arguments: Arguments, there: Sequence[Acl]) -> list[Acl]:
    """Allowed or denied, of the host that was named or of all."""
    from ottla.security import words

    who = _understood(lambda: words.principal(arguments.text("user")))
    mine = [acl for acl in there if acl.principal == who]
    if arguments.optional("host") is not None:
        mine = [acl for acl in mine if acl.host == _host(arguments)]
    if arguments.optional("what") is None:
        return sorted(mine)
    _, wanted = _wishes(arguments)
    keys = {(each.operation, *each.on) for each in wanted}
    return sorted(acl for acl in mine if (acl.operation, acl.resource, acl.name, acl.pattern) in keys)


# ---- why, who, of, check


def _rules(server: Cluster) -> Rules:
    """By the cluster's entries. What the brokers' files add they do not tell, as in Kafka; that there is something,
    they do."""
    from ottla.model.ids import Uuid
    from ottla.security.acls import AclIndex, Rules

    index = AclIndex()
    for number, acl in enumerate(_all(server)):
        index.add(Uuid(number.to_bytes(16)), acl)
    given = _settings_of_a_broker(server)
    for name, meaning in _UNTOLD.items():
        if name in given:
            note(f"The brokers have {name}, whose value they do not tell: {meaning}.")
    return Rules(index)


_UNTOLD: Final = {
    "super.users": "who is in it may do everything",
    "allow.everyone.if.no.acl.found": "if it is true, everybody may do everything with what no entry is about",
}


def _settings_of_a_broker(server: Cluster) -> list[str]:
    """Their names; none for those who may not ask."""
    from ottla.client import admin
    from ottla.client.errors import KafkaError

    server.metadata([])
    broker = min(server.brokers)
    (entries,) = admin.describe_configs(server, admin.BROKER, [str(broker)], broker=broker).values()
    return [] if isinstance(entries, KafkaError) else [entry.name for entry in entries]


def why(arguments: Arguments) -> int:
    from ottla.security import words

    who = _understood(lambda: words.principal(arguments.text("user")))
    on = _understood(lambda: _one(arguments.text("resource")))
    operation = _understood(lambda: words.operation(arguments.text("operation"), on.resource))
    with cluster(arguments) as server:
        rules = _rules(server)
    host = _host(arguments)
    verdict = rules.rights(who, host).why(operation, on.resource, on.name)
    answer = f"{who} {'may' if verdict.allowed else 'may not'} {operation.name} {on}"
    reason = _reason(verdict)
    near = [] if verdict.allowed else [acl for acl in _near(rules, who, on) if acl != verdict.acl]
    advice = "" if verdict.allowed else _advice(verdict, who, f"{operation.name.lower()} {on}")
    if output(arguments) == "json":
        show_json(
            {
                "principal": who,
                "operation": operation.name,
                "resource": str(on),
                "allowed": verdict.allowed,
                "rule": verdict.rule.value,
                "acl": None if verdict.acl is None else words.sentence(verdict.acl),
                "near": [words.sentence(acl) for acl in near],
                "do": advice or None,
            }
        )
        return OK if verdict.allowed else FAILED
    print(f"{answer}: {reason}")
    for acl in near:
        print(f"  near: {words.sentence(acl)}")
    if advice:
        print(f"  {advice}")
    return OK if verdict.allowed else FAILED


def _one(text: str) -> Named:
    from ottla.model.acls import Pattern
    from ottla.security.words import BadWords, resource

    found = resource(text)
    if found.pattern is Pattern.PREFIXED or found.name == "*":
        raise BadWords(f"{text}: one name is expected, a pattern cannot be asked for")
    return found


def _reason(verdict: Verdict) -> str:
    from ottla.security.words import sentence

    return "no entry allows it" if verdict.acl is None else f"an entry says that {sentence(verdict.acl)}"


def _near(rules: Rules, who: str, on: Named) -> list[Acl]:
    """Entries for the same one on something else of the resource, or for others on the same."""
    about = [acl for acl in rules.index.acls.values() if acl.resource == on.resource and acl.covers(on.name)]
    mine = [acl for acl in about if acl.principal in (who, "User:*")]
    return sorted(mine)[:_NEAR] or sorted(about)[:_NEAR]


def _advice(verdict: Verdict, who: str, words: str) -> str:
    from shlex import quote

    from ottla.security.words import operation_text, resource_text

    if verdict.acl is None:
        what, _, on = words.partition(" ")
        return f"allow it with: ottla acls allow {quote(who)} {what} {quote(on)} --execute"
    acl = verdict.acl
    return (
        f"take that away with: ottla acls remove {quote(acl.principal)} {operation_text(acl.operation).lower()} "
        f"{quote(resource_text(acl))} --execute"
    )


def who(arguments: Arguments) -> int:
    from ottla.security import words

    on = _understood(lambda: _one(arguments.text("resource")))
    named = arguments.optional("operation")
    only = None if named is None else _understood(lambda: words.operation(named, on.resource))
    with cluster(arguments) as server:
        rules = _rules(server)
    table = Table("PRINCIPAL", "HOST", "MAY")
    for principal, host, rights in _people(rules, on):
        able = _operations(rights, on)
        if able and (only is None or rights.allows(only, on.resource, on.name)):
            table.add(principal, host, " ".join(able))
    show(table, output(arguments))
    return OK


def _people(rules: Rules, on: Named) -> Iterable[tuple[str, str, Rights]]:
    pairs: dict[tuple[str, str], None] = {}
    for acl in sorted(rules.index.acls.values()):
        if acl.resource == on.resource and acl.covers(on.name):
            pairs[acl.principal, acl.host] = None
    return [(principal, host, rules.rights(principal, host)) for principal, host in pairs]


def _operations(rights: Rights, on: Named) -> list[str]:
    from ottla.model.permissions import Operation
    from ottla.security.words import fitting

    able = [each.name for each in fitting(on.resource) if rights.allows(each, on.resource, on.name)]
    return [Operation.ALL.name] if len(able) == len(fitting(on.resource)) else able


def of(arguments: Arguments) -> int:
    from ottla.model.acls import EVERYBODY
    from ottla.security import words

    who = _understood(lambda: words.principal(arguments.text("user")))
    with cluster(arguments) as server:
        rules = _rules(server)
    _shown([acl for acl in rules.index.acls.values() if acl.principal in (who, EVERYBODY)], output(arguments))
    return OK


def check(arguments: Arguments) -> int:
    from pathlib import Path

    from ottla.security import words

    file = arguments.text("file")
    expected = _understood(lambda: words.expectations(Path(file).read_text(encoding="utf-8")))
    with cluster(arguments) as server:
        rules = _rules(server)
    wrong = [(each, verdict) for each in expected if (verdict := _verdict(rules, each)).allowed != each.allowed]
    if output(arguments) == "json":
        document: list[Json] = [
            {"line": each.line, "expected": str(each), "rule": verdict.rule.value} for each, verdict in wrong
        ]
        show_json({"checked": len(expected), "wrong": document})
    else:
        for each, verdict in wrong:
            print(f"{file}:{each.line}: {each}, but {_reason(verdict)}")
        print(f"{counted(len(expected), 'expectation')}, {len(wrong)} not met")
    return FAILED if wrong else OK


def _verdict(rules: Rules, expected: Expectation) -> Verdict:
    return rules.rights(expected.principal, expected.host).why(*expected.needed, expected.name)


_USER = Argument("USER", help="A name (alice is User:alice), or * for everybody.")
_RESOURCE = Argument(
    "RESOURCE", help="topic:NAME, group:NAME, transactional-id:NAME, delegation-token:ID, user:NAME or cluster."
)
_WHAT = Argument("WHAT", help="produce, consume, transact or stream, or an operation such as write.")
_ON = Argument(
    "RESOURCE",
    help="Topics of an activity, or resources of an operation (topic:NAME, group:NAME, …). NAME* is all that begin so.",
    many=True,
)
_HOST = Option("--host", value="ADDRESS", help="Only from this address; else from all.")
_EXECUTE = Option("--execute", help="Do it.")
_ACTIVITY = (
    Option("--group", value="GROUP", help="The consumers' group; of a streams application its id."),
    Option("--transactional-id", value="ID", help="The transactional producer's id."),
    _HOST,
    _EXECUTE,
    *REACH,
)

COMMANDS = (
    Command(
        "list",
        list_acls,
        summary="Show the entries, of all or of one user, or those about a resource.",
        options=(
            Option("--user", "--principal", value="USER", help="Only this one's."),
            Option("--resource", value="RESOURCE", help="Only those about this, prefixes and * included."),
            *SHOW,
        ),
        examples=(("", "ottla acls list"), ("What is about a topic", "ottla acls list --resource topic:orders")),
    ),
    Command(
        "allow",
        allow,
        summary="Allow an activity or an operation. Shows what it would do unless --execute is given.",
        arguments=(_USER, _WHAT, _ON),
        options=_ACTIVITY,
        examples=(
            ("To write to a topic", "ottla acls allow alice produce orders --execute"),
            ("To read it in a group", "ottla acls allow bob consume orders --group billing --execute"),
            ("All topics that begin so", "ottla acls allow carol consume 'orders.*' --group 'carol-*' --execute"),
            ("A single operation", "ottla acls allow alice describe-configs topic:orders --execute"),
        ),
    ),
    Command(
        "deny",
        deny,
        summary="Deny, which wins over everything that is allowed. Shows what it would do unless --execute is given.",
        arguments=(_USER, _WHAT, _ON),
        options=_ACTIVITY,
        examples=(("", "ottla acls deny alice delete topic:orders --execute"),),
    ),
    Command(
        "remove",
        remove,
        summary="Take entries away, allowed or denied. Shows what it would do unless --execute is given.",
        arguments=(
            _USER,
            Argument("WHAT", help=f"{_WHAT.help} Without it, all of the user's.", required=False),
            Argument("RESOURCE", help=_ON.help, many=True, required=False),
        ),
        options=_ACTIVITY,
        examples=(
            ("", "ottla acls remove alice produce orders --execute"),
            ("All that a user has", "ottla acls remove alice --execute"),
        ),
        aliases=("delete",),
    ),
    Command(
        "why",
        why,
        summary="May this user do that? With the rule that decides, and what to do about it. Exit code 1: no.",
        arguments=(_USER, Argument("OPERATION", help="read, write, describe, …"), _RESOURCE),
        options=(_HOST, *SHOW),
        examples=(("", "ottla acls why alice write topic:orders"),),
    ),
    Command(
        "who",
        who,
        summary="Who may do what with a resource.",
        arguments=(_RESOURCE, Argument("OPERATION", help="Only who may do this.", required=False)),
        options=SHOW,
        examples=(("", "ottla acls who topic:orders"), ("", "ottla acls who topic:orders write")),
    ),
    Command(
        "of",
        of,
        summary="All entries that count for a user, those for everybody included.",
        arguments=(_USER,),
        options=SHOW,
        examples=(("", "ottla acls of alice"),),
    ),
    Command(
        "check",
        check,
        summary="Hold the cluster against a file of expectations, for tests. Exit code 1: one is not met.",
        details="One to a line: NAME may [not] OPERATION RESOURCE [from HOST]. What follows a # is for people.\n\n"
        "  alice may write topic:orders\n  bob may not read topic:payments from 10.0.0.7",
        arguments=(Argument("FILE", help="A text file."),),
        options=SHOW,
        examples=(("", "ottla acls check expectations.txt"),),
    ),
)
