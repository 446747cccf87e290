"""One file per API key: how a broker answers it.

A file is named after its key and tells in its head which versions it speaks and what each changed. `handle` is called
by the session with the decoded request; it returns the response, or an awaitable of it where it has to wait. What
several of them share stands beside them under its own name.
"""
