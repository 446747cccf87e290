"""HTTP, once, for every service of the house: registry, Connect, SQL, console, the node's own metrics.

**What a service writes** is a tuple of `routes.Route`s: method, path, the coroutine that answers, the types of body and
reply, and what it needs to be allowed. From that table come the routing, the checks of media types, the permission that
the `auth.Doorkeeper` is asked for, and the OpenAPI document. A coroutine gets one `call.Call` and gives a value, which
becomes JSON in the media type that was asked for, or an `answers.Answer` or `Stream` for anything else. What the client
did wrong is raised as `problems.Problem`; each service says by a function how its error bodies look.

**What is done here** (`application`): the path is matched by its raw parts, each unquoted by itself, as the name of a
subject may hold a slash; GET answers HEAD; 404, 405, 406, 413 and 415 are found before the coroutine runs; a body is
read up to a limit; whatever else goes wrong is a 500 with a number that stands in the log beside the traceback.

**How it is served** (`listening`, `serving`): a port is bound when the service starts, and uvicorn is imported when the
first connection comes (62 ms of CPU and 7 MB that a node which nobody asks never pays). Bytes become requests by
uvicorn's protocol on httptools; limits on the head, on silence, on answers that nobody reads and on the number of
connections are added here, as uvicorn has none. Who listens on loopback answers only to addresses and to `localhost`: a
page in a browser can make any other name mean 127.0.0.1. `threads.ThreadedServer` is for programs without a loop.
"""
