"""Groups and their offsets, over one partition of `__consumer_offsets`.

`shard` routes a request to the kind of its group and replays records; offsets (`offsets`, `commits`, `committed`,
`expiry`) are the same for every kind. A kind is a package (`classic`, `consumer`): its group answers for itself, its
`kind.py` decides (both shapes are in `kind`). Share and streams groups come as two more packages and two rows in the
shard. What a kind keeps beside its records it changes only after it has told `coordinator.undo`.
"""
