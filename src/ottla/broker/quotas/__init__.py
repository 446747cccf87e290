"""Client quotas: how much of a node one client may use (KIP-13, KIP-124, KIP-219, KIP-546, KIP-599, KIP-612). A core.

A quota is set for users, client ids, pairs of both, or the default of any of these: eight levels, of which the most
precise that is set counts (`levels`), for each kind of quota on its own. What is used is counted in buckets. Clients to
whom the same level applies share a bucket if the level names only their user; a default is counted for each by itself.

`samples` and `tokens` are Kafka's arithmetic, to the millisecond: clients are held up as long as by Kafka. `clients` is
the book of one node: it turns the quotas of the metadata image into buckets and says for (user, client id) which of
them its requests are charged to. A session asks once, keeps the answer, and asks again when the book's version has
changed. With no quota set for anybody the whole of it is one false flag.

Who acts on it stands elsewhere: `broker.front.share` mutes connections, `k01_fetch` answers with nothing,
`broker.front.admission` holds new connections, the controller refuses to create topics.
"""
