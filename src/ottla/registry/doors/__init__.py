"""Who may ask a registry, or a Connect worker: HTTP Basic and bearer tokens, held against the cluster's own users or a
file of users.

Theory of operation. A `door.BasicDoor` stands before every route. What a caller shows goes to whoever can tell
(`ClusterLogins`: logs in at a broker with it, so that the cluster's users, and a change of their passwords, count here
too; `UsersFile`: a file, for clusters in which nobody logs in). What was found right is remembered for a bounded time
in `proofs`, under a keyed hash: a password or a token is never kept. What callers may
is decided by the cluster's ACLs (`subject_rights`), where they are its users. Writes are passed on to the leader with
what the caller showed, and the leader looks at it again.
"""
