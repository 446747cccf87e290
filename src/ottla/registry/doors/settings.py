"""Settings of a service beside the cluster that say who its callers are. Read at each start of a node, so nothing that
listens or connects is loaded here."""

from typing import Final

from ottla.model.properties.property import BOOLEAN, INT, LIST, STRING, Property

_BY_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def login_settings(service: str, rights: str) -> tuple[Property, ...]:
    """`rights`: what ACLs decide there, in words."""
    return (
        Property(
            f"{service}.authentication.method",
            STRING,
            "NONE",
            "How callers say who they are: BASIC (user and password) or NONE.",
            one_of=("NONE", "BASIC"),
            ignore_case=True,
        ),
        Property(
            f"{service}.users.file",
            STRING,
            "",
            "Users and what is known of their passwords, a line for each as `ottla users hash` writes it. When empty, "
            "callers are the users of the cluster.",
        ),
        Property(
            f"{service}.login.mechanisms",
            LIST,
            (),
            "By which mechanisms callers are logged in at the cluster, in this order; the service's own, when empty.",
            one_of=_BY_PASSWORD,
            ignore_case=True,
        ),
        Property(
            f"{service}.login.cache.ms",
            INT,
            60_000,
            "How long a caller who was let in is not asked about again.",
            at_least=0,
        ),
        Property(
            f"{service}.authorization.method",
            STRING,
            "",
            f"ACL: {rights}. NONE: all who are let in may do everything. When empty, ACL for the cluster's users and "
            "NONE for others.",
            one_of=("", "ACL", "NONE"),
            ignore_case=True,
        ),
        Property(
            "super.users",
            STRING,
            "",
            "Who may do everything, whatever the ACLs say: as the brokers have it, User:admin;User:ops.",
        ),
        Property(
            "allow.everyone.if.no.acl.found",
            BOOLEAN,
            False,
            "Whether what no ACL is about is everybody's: as the brokers have it.",
        ),
        Property(
            "ottla.audit.format",
            STRING,
            "kafka",
            f"How refusals are written to the logger ottla.{service}.audit: kafka as in Kafka, json as JSON.",
            one_of=("kafka", "json"),
        ),
    )
