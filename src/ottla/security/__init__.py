"""Who is at the other end and what he may do: cores without I/O. Bytes come in, decisions go out.

`acls` is the decision of Kafka's StandardAuthorizer: `AclIndex` is fed with entries one by one, as the metadata log
tells of them, and `Rules` answers (principal, host, operation, resource) with a verdict and the rule it rests on.

`tls` holds what TLS needs besides OpenSSL: settings under Kafka's names, key and trust stores in the three formats that
Kafka takes, certificates and their names as Java spells them, and which certificate may follow which while a node runs.
Sockets and handshakes are in `net`; this room neither opens files nor asks the time.

`sasl` is the conversation in which a client says who he is and shows it, from both ends; what it ends in is a name,
and until when it holds. Whoever keeps the connection brings bytes, time and random numbers, looks up what is needed,
and does what comes back: answer, wait, close.
"""
