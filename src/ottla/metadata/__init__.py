"""The facts of the cluster: what `__cluster_metadata` says, as records, as an image, and as what changed.

A `MetadataImage` is everything the cluster has decided up to one offset: brokers, topics, partitions, configs,
features. It is frozen; whoever has one may keep it. A `MetadataDelta` replays committed records over an image and
gives the next one, copying only the mappings it touches, and remembers what changed, so that listeners need not
compare. `replay` does that for a whole log, transactions of records included (KIP-868); `difference` makes the delta
where a snapshot took the place of many records; `records` writes an image back as the records of a snapshot.

This is the only way that decisions of the controller reach brokers: nobody is told by a call. `delta.replay` trusts
the log: a record that contradicts the image is a bug, or a foreign log that must not be guessed about.
"""
