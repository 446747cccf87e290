"""A schema registry that knows what it is told: for tests of whoever asks one."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self


class ScriptedRegistry:
    """`with ScriptedRegistry() as registry:` then registry.url. `answers` by target; `asked` is what came."""

    def __init__(self) -> None:
        self.answers: dict[str, object] = {}
        self.asked: list[str] = []
        self.broken = False
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                script.asked.append(self.path)
                found = script.answers.get(self.path)
                self.send_response(500 if script.broken else 404 if found is None else 200)
                body = json.dumps(found or {"error_code": 40403}).encode()
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def register(self, schema_id: int, *subjects: str, **schema: object) -> None:
        """`schema` is what the registry tells of it: schema, schemaType, references."""
        self.answers[f"/schemas/ids/{schema_id}/subjects"] = list(subjects)
        self.answers[f"/schemas/ids/{schema_id}"] = schema

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
