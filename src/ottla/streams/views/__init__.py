"""The contents of stores, for interactive queries. No Spark here.

`follower` reads the changelog topics of an application into one `view` for each store, an SQLite file; `lookups` asks
them with the user's keys, `server` does so over HTTP.
"""
