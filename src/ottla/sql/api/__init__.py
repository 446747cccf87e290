"""ksqlDB's REST API in front of `sql.server`: a file per family of paths, bodies and codes as its clients know them."""
