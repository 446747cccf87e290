"""Transactions (KIP-98, KIP-360, KIP-890): who may write under a transactional id, and how its transactions end.

`machine` has the rules of one transactional id, as values; `shard` the ids of one partition of `__transaction_state`,
where each change is a record before anybody acts on it; `states` which state may follow which. The markers that end a
transaction are written by the broker (`broker.coordination`), which the shard asks for them again and again until every
partition has acknowledged.
"""
