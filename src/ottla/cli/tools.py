"""The tools by name, each with the module that holds it: `ottla --help` needs no other import."""

from typing import Final

TOOLS: Final[dict[str, tuple[str, str]]] = {
    "start": ("ottla.cli.start", "Start a node: with no file at all, or with Kafka's server.properties as it is."),
    "topics": ("ottla.cli.topics", "List, create, describe, alter, delete and trim topics."),
    "configs": ("ottla.cli.configs", "Show and change settings of topics, brokers, the cluster and groups."),
    "produce": ("ottla.cli.produce", "Write records to a topic, from standard input or a file."),
    "consume": ("ottla.cli.consume", "Read records from topics: by offset, by time, or as they arrive."),
    "groups": ("ottla.cli.groups", "List, describe (with lag), move and delete consumer groups."),
    "transactions": ("ottla.cli.transactions", "List and describe transactions; find and abort those that hang."),
    "acls": ("ottla.cli.acls", "Who may do what: list, allow, deny, remove; ask why, who, and what a user may."),
    "cluster": ("ottla.cli.cluster", "Its state at a glance, brokers, feature levels and log directories."),
    "quotas": (
        "ottla.cli.quotas",
        "How much users, clients and addresses may use: list, set, remove, show.",
    ),
    "quorum": ("ottla.cli.quorum", "The controllers: who leads, who votes; let one vote or take its vote."),
    "reassign": ("ottla.cli.reassign", "Move partitions to other brokers and watch them move."),
    "leader-election": ("ottla.cli.leader_election", "Elect preferred leaders, or any live one when all else is lost."),
    "mirror": ("ottla.cli.mirror", "Copy topics and groups between clusters, by MirrorMaker's file; status, failover."),
    "registry": ("ottla.cli.registry", "Start a schema registry by itself; `ottla start` brings one along."),
    "schemas": ("ottla.cli.schemas", "List, register, check, compare, delete and copy schemas of a schema registry."),
    "connect": ("ottla.cli.connect", "Run a Connect worker; list, create, watch, stop and restart connectors."),
    "users": ("ottla.cli.users", "Who may log in by SCRAM: add, list, remove, other passwords; the first user, too."),
    "tokens": ("ottla.cli.tokens", "Delegation tokens: let somebody else act as you for a while."),
    "streams": (
        "ottla.cli.streams",
        "Run Kafka Streams applications on Spark; describe, explain, watch and reset them.",
    ),
    "sql": ("ottla.cli.sql", "ksqlDB's language: a shell for statements, and query tests."),
    "sql-server": ("ottla.cli.sql_server", "Start a SQL server by itself; `ottla start` brings one along."),
    "certs": ("ottla.cli.certs", "Certificates: make some for development, check what a server shows."),
    "dump-log": ("ottla.cli.dump_log", "Read Kafka's files on disk: segments, indexes, snapshots, checkpoints."),
}
"""tool: (module, one-line summary)"""
