"""What the target is given: topics, partitions, settings, ACLs."""

from ottla.mirror.policy import Policy
from ottla.mirror.remote import Lacking, NewTopic, Remote, Setting
from ottla.mirror.selection import Names, Selection, TopicSettings
from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.permissions import Operation, Resource

_OWN, _BROKER, _DEFAULT = 1, 4, 5


def _remote(**config: str) -> Remote:
    settings = TopicSettings.of({name.replace("_", "."): value for name, value in config.items()})
    return Remote(Policy(), Selection(Policy(), Names(".*", ""), "eu", heartbeats=False), settings, "us")


_SETTINGS = [
    Setting("retention.ms", "1000", _OWN),
    Setting("cleanup.policy", "delete", _DEFAULT),
    Setting("min.insync.replicas", "2", _OWN),
    Setting("segment.bytes", "1", _BROKER),
    Setting("secret", None, _OWN, sensitive=True),
]


def test_topics_and_partitions_that_are_missing_are_made_and_none_is_taken_away() -> None:
    there = {"new": 3, "grown": 4, "same": 1, "shrunk": 1}
    here = {"us.grown": 2, "us.same": 1, "us.shrunk": 5, "us.gone": 1, "new": 3}
    assert _remote().lacking(there, here, {"new": _SETTINGS}) == Lacking(
        [NewTopic("us.new", 3, {"retention.ms": "1000"})], {"us.grown": 4}
    )


def test_settings_of_their_own_are_copied_and_defaults_are_the_targets() -> None:
    assert _remote().alterations(_SETTINGS) == {"retention.ms": "1000", "cleanup.policy": None}


def test_defaults_of_the_source_are_set_where_they_are_to_count() -> None:
    from_source = _remote(use_defaults_from="source")
    assert from_source.alterations(_SETTINGS) == {"retention.ms": "1000", "cleanup.policy": "delete"}
    (made,) = from_source.lacking({"new": 1}, {}, {"new": _SETTINGS}).topics
    assert made.settings == {"retention.ms": "1000", "cleanup.policy": "delete"}


def test_nobody_may_write_to_a_copy() -> None:
    def acl(operation: Operation, permission: PermissionType = PermissionType.ALLOW, name: str = "orders") -> Acl:
        return Acl(Resource.TOPIC, name, Pattern.LITERAL, "User:ann", "*", operation, permission)

    copied = _remote().acls(
        [
            acl(Operation.READ),
            acl(Operation.WRITE),
            acl(Operation.ALL),
            acl(Operation.WRITE, PermissionType.DENY),
            acl(Operation.READ, name="eu.orders"),
            acl(Operation.READ, name="*"),
            acl(Operation.READ)._replace(pattern=Pattern.PREFIXED),
            acl(Operation.READ)._replace(resource=Resource.GROUP),
        ]
    )
    assert copied == [
        acl(Operation.READ, name="us.orders"),
        acl(Operation.READ, name="us.orders"),
        acl(Operation.WRITE, PermissionType.DENY, name="us.orders"),
    ]
