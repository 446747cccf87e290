"""Whoever issues tokens for tests: keys, tokens signed with them, and their set served over HTTP."""

import hmac
import json
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from joserfc import jwt
from joserfc.jwk import ECKey, KeyParameters, RSAKey

ISSUER = "https://login.example"
AUDIENCE = "kafka"


class Issuer:
    def __init__(self, key_id: str = "k1", kind: str = "EC") -> None:
        parameters = KeyParameters(kid=key_id)
        self.key = ECKey.generate_key("P-256", parameters) if kind == "EC" else RSAKey.generate_key(2048, parameters)
        self.algorithm = "ES256" if kind == "EC" else "RS256"

    def token(
        self, name: str = "alice", *, key_id: str | None = "k1", now_s: float | None = None, **claims: Any
    ) -> str:
        now = int(time.time() if now_s is None else now_s)
        all_claims = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 60, **claims}
        header = {"alg": self.algorithm, **({} if key_id is None else {"kid": key_id})}
        kept = {key: value for key, value in all_claims.items() if value is not None}
        return jwt.encode(header, kept, self.key)

    def key_set(self) -> bytes:
        return json.dumps({"keys": [self.key.as_dict(private=False)]}).encode()


def unsecured(name: str, exp: int, **header: Any) -> str:
    return ".".join([_part({"alg": "none", **header}), _part({"sub": name, "iat": exp - 60, "exp": exp}), ""])


def _part(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def signed_with_public_key(issuer: Issuer, claims: dict[str, Any]) -> str:
    """The old trick: the public key, which everybody has, taken for a shared secret."""
    signed = f"{_part({'alg': 'HS256', 'kid': 'k1'})}.{_part(claims)}"
    signature = hmac.digest(issuer.key.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{urlsafe_b64encode(signature).decode().rstrip('=')}"


class KeyServer:
    """Serves a set of keys on loopback; `answer` may be replaced, by something that hangs too."""

    def __init__(self, issuer: Issuer) -> None:
        self.answer = issuer.key_set()
        self.requests = 0
        self.asked: list[str] = []
        """Who asked for tokens, and how."""
        self.hangs = threading.Event()
        self.hangs.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests += 1
                server.hangs.wait()
                self.send_response(200)
                self.send_header("Content-Length", str(len(server.answer)))
                self.end_headers()
                self.wfile.write(server.answer)

            def do_POST(self) -> None:
                """The token endpoint: client credentials for a token that names the client."""
                asked = self.rfile.read(int(self.headers["content-length"])).decode()
                pair = b64decode(self.headers["authorization"].removeprefix("Basic ")).decode()
                name, _, secret = pair.partition(":")
                server.asked.append(f"{name} {asked}")
                told = {"access_token": issuer.token(name), "token_type": "Bearer", "expires_in": 60}
                wrong = {"error": "invalid_client"}
                answer = json.dumps(told if secret == f"{name}-secret" else wrong).encode()
                self.send_response(200 if secret == f"{name}-secret" else 401)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Not to the test's output."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/keys"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hangs.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
