"""Mirroring: topics of one cluster copied to another, and the groups that read them brought along.

It is MirrorMaker 2 as its users know it: three connectors (source, checkpoint, heartbeat) with its names, its records
and its file. What they decide is here without I/O:

- `policy` names remote topics and knows from their names where they came from;
- `selection` says which topics, groups and settings take part;
- `formats` are the bytes of syncs, checkpoints and heartbeats;
- `syncs` says when a pair of offsets (there, here) is worth a record, keeps such pairs, and translates by them;
- `checkpoints` says what of a group's offsets is news, and which may be written for it on the target;
- `remote` says which topics, partitions, settings and ACLs the target lacks;
- `flows` reads mm2.properties into the configuration of every connector.

A copied offset is exact where a record of the same offset was synced and otherwise one behind the last sync: a reader
that moves over may see records again, but never skips one.
"""
