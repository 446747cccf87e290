"""Formats log directories as Kafka's `kafka-storage format` does, and reads back whose they are.

meta.properties is written last: a directory without it was never formatted, whatever else it holds.
"""

import hashlib
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from ottla.controller.activation import default_bootstrap_records
from ottla.metadata.batches import CorruptMetadata
from ottla.metadata.features import LATEST_METADATA_VERSION
from ottla.model.ids import ZERO_UUID, Uuid, uuid_text
from ottla.model.ports import Clock, Ids
from ottla.model.properties import Settings
from ottla.protocol.codec import MetadataRecord
from ottla.raft.snapshots import BOOTSTRAP_FILE, SUFFIX, SnapshotId, decode_snapshot, encode_snapshot
from ottla.raft.voters import Voter, VoterEndpoint, VoterSet
from ottla.storage.checkpoints import (
    CorruptCheckpoint,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from ottla.storage.fs import Filesystem, parent, replace_file

META_PROPERTIES: Final = "meta.properties"
METADATA_LOG: Final = "__cluster_metadata-0"
BOOTSTRAP_SNAPSHOT: Final = SnapshotId(0, 0)


class FormatError(Exception):
    """The directories cannot be used as they are; the text says what to do."""


class Identity(NamedTuple):
    cluster_id: str
    node_id: int
    directory_ids: dict[str, Uuid]
    """By log directory, in the order of log.dirs."""
    metadata_directory_id: Uuid


class Beginning(Enum):
    KNOWN = "its cluster is known: from its directories, by cluster.id, or because it makes one with others like it"
    FIRST = "it begins a quorum that others join, unless they have one already"
    JOINS = "it joins a cluster, whose id only the controllers know"


def beginning(settings: Settings, fs: Filesystem, absent: Sequence[str] = ()) -> Beginning:
    """How a node comes to its cluster, as its directories tell but those that are `absent`."""
    present = [path for path in _directories(settings) if path not in absent]
    if settings.cluster_id is not None or any(_read(fs, path) is not None for path in present):
        return Beginning.KNOWN
    if not settings.is_controller:
        return Beginning.JOINS
    if settings.voters or len(settings.get_list("controller.quorum.bootstrap.servers")) < 2:
        return Beginning.KNOWN
    return Beginning.FIRST if _begins_the_quorum(settings) else Beginning.JOINS


def identify(
    settings: Settings,
    fs: Filesystem,
    clock: Clock,
    ids: Ids,
    joined: str | None = None,
    absent: Sequence[str] = (),
) -> Identity:
    """Who this node is, from its directories but those that are `absent`. New ones are formatted on the way; with
    `joined`, the id of a cluster, as those of a node that comes to others."""
    directories = [path for path in _directories(settings) if path not in absent]
    found = {path: meta for path in directories if (meta := _read(fs, path)) is not None}
    cluster_id = _agreed_cluster(settings, found)
    if not found:
        _refuse_foreign(fs, settings.metadata_log_dir)
    cluster_id = cluster_id or joined or _cluster_of(settings) or uuid_text(ids.uuid())
    known = {path: meta.directory_id or ids.uuid() for path, meta in found.items()}
    _refuse_copies(known)
    all_ids = {path: known.get(path) or ids.uuid() for path in directories}
    for path in directories:
        meta = MetaProperties(cluster_id, settings.node_id, all_ids[path])
        if path not in found:
            _format(fs, settings, clock, path, meta, begins=joined is None and _begins_the_quorum(settings))
        elif found[path].directory_id is None:
            # Written by a Kafka from before directories had ids.
            replace_file(fs, f"{path}/{META_PROPERTIES}", encode_meta_properties(meta))
    return Identity(
        cluster_id,
        settings.node_id,
        {path: all_ids[path] for path in settings.log_dirs if path in all_ids},
        all_ids[settings.metadata_log_dir],
    )


def _cluster_of(settings: Settings) -> str | None:
    """Nodes that name the same quorum are one cluster: without a format step they agree on its id because each makes it
    from those names. A node that is its quorum alone draws one."""
    voters = [f"{voter.id}@{voter.host}:{voter.port}" for voter in settings.voters]
    members = sorted(voters or settings.get_list("controller.quorum.bootstrap.servers"))
    if len(members) < 2:
        return None
    digest = bytearray(hashlib.sha256("\n".join(members).encode()).digest()[:16])
    digest[0] &= 0x7F  # as for any id: none that prints with a leading dash
    return uuid_text(Uuid(bytes(digest)))


def _begins_the_quorum(settings: Settings) -> bool:
    """With voters in the log the first bootstrap server begins as the only one; others join it."""
    servers = settings.get_list("controller.quorum.bootstrap.servers")
    own = [f"{each.host}:{each.port}" for each in settings.advertised_controller_listeners]
    return settings.is_controller and not settings.voters and (len(servers) < 2 or servers[0] in own)


def _directories(settings: Settings) -> list[str]:
    return list(dict.fromkeys((*settings.log_dirs, settings.metadata_log_dir)))


def _read(fs: Filesystem, directory: str) -> MetaProperties | None:
    path = f"{directory}/{META_PROPERTIES}"
    try:
        return decode_meta_properties(fs.read(path))
    except FileNotFoundError:
        return None
    except CorruptCheckpoint as error:
        raise FormatError(f"{path}: {error}. Restore the file, or move the directory away to start afresh.") from error


def _agreed_cluster(settings: Settings, found: dict[str, MetaProperties]) -> str | None:
    cluster_id = settings.cluster_id
    for path, meta in found.items():
        if meta.node_id != settings.node_id:
            raise FormatError(f"{path} belongs to node {meta.node_id}, but node.id is {settings.node_id}.")
        if cluster_id is not None and meta.cluster_id != cluster_id:
            raise FormatError(f"{path} belongs to cluster {meta.cluster_id}, not to {cluster_id}.")
        cluster_id = meta.cluster_id
    return cluster_id


def _refuse_foreign(fs: Filesystem, directory: str) -> None:
    """A metadata log without meta.properties: formatting over it would lose a cluster."""
    path = f"{directory}/{METADATA_LOG}"
    if fs.exists(path) and any(entry.name.endswith(".log") and entry.size for entry in fs.list(path)):
        raise FormatError(
            f"{directory} holds the metadata log of a cluster but no {META_PROPERTIES}. Restore that file, or move the "
            "directory away to start a new cluster."
        )


def _refuse_copies(known: dict[str, Uuid]) -> None:
    by_id: dict[Uuid, str] = {}
    for path, directory_id in known.items():
        if directory_id in by_id:
            raise FormatError(f"{path} is a copy of {by_id[directory_id]}: both have the same directory.id.")
        by_id[directory_id] = path


def _format(
    fs: Filesystem, settings: Settings, clock: Clock, directory: str, meta: MetaProperties, *, begins: bool
) -> None:
    fs.mkdir(directory)
    now = clock.wall()
    write_file(fs, f"{directory}/{BOOTSTRAP_FILE}", _bootstrap_bytes(default_bootstrap_records(), now))
    if directory == settings.metadata_log_dir and begins:
        voters = VoterSet((local_voter(settings, meta.directory_id or ZERO_UUID),))
        log = f"{directory}/{METADATA_LOG}"
        fs.mkdir(log)
        write_file(fs, f"{log}/{BOOTSTRAP_SNAPSHOT.stem}{SUFFIX}", _voters_bytes(voters, now))
        fs.sync_dir(log)
    # Its own directory sync covers the two files before it; its parent must know the directory.
    replace_file(fs, f"{directory}/{META_PROPERTIES}", encode_meta_properties(meta))
    fs.sync_dir(parent(directory.rstrip("/")) if "/" in directory.rstrip("/") else ".")


def local_voter(settings: Settings, directory_id: Uuid) -> Voter:
    endpoints = [VoterEndpoint(each.name, each.host, each.port) for each in settings.advertised_controller_listeners]
    return Voter(settings.node_id, directory_id, tuple(endpoints))


def _bootstrap_bytes(records: Sequence[MetadataRecord], now: int) -> bytes:
    return b"".join(
        encode_snapshot(records, epoch=0, now=now, last_contained_timestamp=0, metadata_version=LATEST_METADATA_VERSION)
    )


def _voters_bytes(voters: VoterSet, now: int) -> bytes:
    return b"".join(
        encode_snapshot(
            (),
            epoch=0,
            now=now,
            last_contained_timestamp=now,
            metadata_version=LATEST_METADATA_VERSION,
            kraft_version=1,
            voters=voters,
        )
    )


def bootstrap_records(fs: Filesystem, directory: str) -> list[MetadataRecord]:
    """What a new cluster begins with; the defaults of this release if the file is gone."""
    path = f"{directory}/{BOOTSTRAP_FILE}"
    try:
        return decode_snapshot(fs.read(path)).records
    except FileNotFoundError:
        return default_bootstrap_records()
    except CorruptMetadata as error:
        raise FormatError(
            f"{path} is damaged: {error}. Remove it to begin with the defaults of this release."
        ) from error


def write_file(fs: Filesystem, path: str, data: bytes) -> None:
    """A whole new file, synced; the caller syncs the directory when all its files are there."""
    temporary = path + ".tmp"
    file = fs.open(temporary, create=True)
    file.truncate(0)
    file.pwrite(data, 0)
    file.sync()
    del file
    fs.rename(temporary, path)
