"""Formats log directories as Kafka's `kafka-storage format` does, and reads back whose they are.

meta.properties is written last: a directory without it was never formatted, whatever else it holds.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.controller.activation import default_bootstrap_records
from ottla.metadata.features import LATEST_METADATA_VERSION
from ottla.model.ids import ZERO_UUID, Uuid, uuid_text
from ottla.model.ports import Clock, Ids
from ottla.model.properties import Settings
from ottla.protocol.codec import Message
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


def identify(settings: Settings, fs: Filesystem, clock: Clock, ids: Ids) -> Identity:
    """Who this node is, from its directories. New ones are formatted on the way."""
    directories = _directories(settings)
    found = {path: meta for path in directories if (meta := _read(fs, path)) is not None}
    cluster_id = _agreed_cluster(settings, found)
    if not found:
        _refuse_foreign(fs, settings.metadata_log_dir)
    cluster_id = cluster_id or uuid_text(ids.uuid())
    known = {path: meta.directory_id or ids.uuid() for path, meta in found.items()}
    _refuse_copies(known)
    all_ids = {path: known.get(path) or ids.uuid() for path in directories}
    for path in directories:
        meta = MetaProperties(cluster_id, settings.node_id, all_ids[path])
        if path not in found:
            _format(fs, settings, clock, path, meta)
        elif found[path].directory_id is None:
            # Written by a Kafka from before directories had ids.
            replace_file(fs, f"{path}/{META_PROPERTIES}", encode_meta_properties(meta))
    return Identity(
        cluster_id,
        settings.node_id,
        {path: all_ids[path] for path in settings.log_dirs},
        all_ids[settings.metadata_log_dir],
    )


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


def _format(fs: Filesystem, settings: Settings, clock: Clock, directory: str, meta: MetaProperties) -> None:
    fs.mkdir(directory)
    now = clock.wall()
    write_file(fs, f"{directory}/{BOOTSTRAP_FILE}", _bootstrap_bytes(default_bootstrap_records(), now))
    if directory == settings.metadata_log_dir and not settings.voters:
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


def _bootstrap_bytes(records: Sequence[Message], now: int) -> bytes:
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


def bootstrap_records(fs: Filesystem, directory: str) -> list[Message]:
    """What a new cluster begins with; the defaults of this release if the file is gone."""
    try:
        data = fs.read(f"{directory}/{BOOTSTRAP_FILE}")
    except FileNotFoundError:
        return default_bootstrap_records()
    return decode_snapshot(data).records


def write_file(fs: Filesystem, path: str, data: bytes) -> None:
    """A whole new file, synced; the caller syncs the directory when all its files are there."""
    temporary = path + ".tmp"
    file = fs.open(temporary, create=True)
    file.truncate(0)
    file.pwrite(data, 0)
    file.sync()
    del file
    fs.rename(temporary, path)
