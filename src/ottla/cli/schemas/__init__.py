"""`ottla schemas`: what a schema registry holds, ours or anybody's that speaks Confluent's API."""

from typing import Final

from ottla.cli.parser import Argument, Command, Option
from ottla.cli.schemas.comparing import diff
from ottla.cli.schemas.copying import copy
from ottla.cli.schemas.deleting import delete
from ottla.cli.schemas.listing import list_subjects, show
from ottla.cli.schemas.registering import check, register
from ottla.cli.schemas.remote import SHOW

SUBJECT: Final = Argument("SUBJECT", help="Such as orders-value, for the values of topic orders.")
FILE: Final = Argument("FILE", help="Its text: .avsc, .json (JSON Schema) or .proto; - is standard input.")
TYPE: Final = Option(
    "--type", value="TYPE", choices=("AVRO", "JSON", "PROTOBUF"), help="Its language, where the name does not tell."
)
REFERENCE: Final = Option(
    "--reference",
    value="NAME=SUBJECT:VERSION",
    many=True,
    help="What the schema refers to by a name: a type (Avro), an import (Protobuf), the URI of a $ref (JSON Schema).",
)
NORMALIZE: Final = Option("--normalize", help="Without regard to the order of what has none.")
DELETED: Final = Option("--deleted", help="What is deleted softly too.")
OF_A_FILE: Final = (TYPE, REFERENCE, NORMALIZE)

COMMANDS: Final = (
    Command(
        "list",
        list_subjects,
        summary="The subjects, with language, latest version and id.",
        options=(
            Option("--prefix", value="PREFIX", help="Only subjects that begin so; `:.context:` is a context."),
            DELETED,
            *SHOW,
        ),
        examples=(
            ("", "ottla schemas list"),
            ("another registry", "ottla schemas list -r https://u:p@sr.example:8081"),
        ),
    ),
    Command(
        "show",
        show,
        summary="One schema: its text, who refers to it, which versions there are.",
        arguments=(
            Argument("SUBJECT", help="Its subject.", required=False),
            Argument("VERSION", help="A number; the latest unless given.", required=False),
        ),
        options=(
            Option("--id", value="ID", number=True, help="By its id, instead of a subject."),
            Option("--raw", help="The text alone, as it is kept."),
            DELETED,
            *SHOW,
        ),
        examples=(
            ("", "ottla schemas show orders-value"),
            ("the text of an older one", "ottla schemas show orders-value 3 --raw > order.avsc"),
            ("what a record was written with", "ottla schemas show --id 100042"),
        ),
    ),
    Command(
        "register",
        register,
        summary="Register a schema as the next version of a subject.",
        details="A schema that the subject has already keeps its version. One that is not compatible is refused, with\n"
        "what is in the way.",
        arguments=(SUBJECT, FILE),
        options=(*OF_A_FILE, *SHOW),
        examples=(
            ("", "ottla schemas register orders-value order.avsc"),
            ("", "ottla schemas register orders-value order.proto --reference common.proto=common:1"),
        ),
    ),
    Command(
        "check",
        check,
        summary="Whether a schema could be registered; nothing is written. Exit code 1: it is not compatible.",
        arguments=(SUBJECT, FILE),
        options=(
            Option(
                "--against",
                value="VERSION",
                default="all",
                help="A number, latest, or all that the subject's level names.",
            ),
            *OF_A_FILE,
            *SHOW,
        ),
        examples=(("in a build", "ottla schemas check orders-value order.avsc"),),
    ),
    Command(
        "diff",
        diff,
        summary="What changed between two versions, field by field, and which can read the other.",
        arguments=(
            SUBJECT,
            Argument("FROM", help="A version; the last but one unless given.", required=False),
            Argument("TO", help="A version; the latest unless given.", required=False),
        ),
        options=(
            Option("--file", value="FILE", help="Compare a version (the latest) with a file instead."),
            TYPE,
            REFERENCE,
            *SHOW,
        ),
        examples=(
            ("", "ottla schemas diff orders-value"),
            ("", "ottla schemas diff orders-value 2 5"),
            ("before registering", "ottla schemas diff orders-value --file order.avsc"),
        ),
    ),
    Command(
        "delete",
        delete,
        summary="Delete a subject or one version: softly, or for good.",
        details="Deleted softly, a schema can still be read by its id. What another schema refers to stays.",
        arguments=(SUBJECT, Argument("VERSION", help="Of one version; of all unless given.", required=False)),
        options=(Option("--permanent", help="For good: records written with it can no longer be read."), *SHOW),
        examples=(
            ("", "ottla schemas delete orders-value 3"),
            ("", "ottla schemas delete orders-value --permanent"),
        ),
    ),
    Command(
        "copy",
        copy,
        summary="Copy subjects into another registry, ids and versions kept.",
        details="Uses mode IMPORT. Whatever the schemas refer to comes along, and so do the settings of the subjects.\n"
        "If the other registry has another schema under one of the ids or versions, nothing is written.",
        arguments=(Argument("SUBJECT", help="All unless given.", many=True, required=False),),
        options=(
            Option("--to", value="URL", help="The registry to copy into."),
            Option("--dry-run", help="Say what would be copied."),
            *SHOW,
        ),
        examples=(
            ("move in", "ottla schemas copy -r https://u:p@old.example:8081 --to http://127.0.0.1:8081"),
            ("", "ottla schemas copy orders-value --to https://u:p@other.example:8081 --dry-run"),
        ),
    ),
)
