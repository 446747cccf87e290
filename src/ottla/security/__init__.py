"""Who is at the other end, without any I/O: bytes come in, decisions go out.

`tls` holds what TLS needs besides OpenSSL: settings under Kafka's names, key and trust stores in the three formats that
Kafka takes, certificates and their names as Java spells them, and which certificate may follow which while a node runs.
Sockets and handshakes are in `net`; this room neither opens files nor asks the time.
"""
