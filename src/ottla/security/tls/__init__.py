"""TLS without sockets: settings, stores, certificates and their names.

`settings` reads Kafka's `ssl.*` of a listener or a client and refuses what contradicts itself. `stores` makes a key
with its chain, or trusted certificates, of a file's bytes, whatever its format (`pem`, `jks`, `pkcs12`). `certificate`
looks into a certificate by `der`, `distinguished_name` spells names as Java does, for ACLs hold such texts, and
`principal_mapping` makes user names of them. `renewal` decides whether a new certificate may take the place of the old
one (KIP-226). `net.tls` makes contexts of all this.
"""
