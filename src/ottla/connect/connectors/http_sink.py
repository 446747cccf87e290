"""HTTP sink: each record, or some of them together, as the body of a request.

At least once, with `Idempotency-Key: topic-partition-offset` of the first record (and partition and offset of the last,
for several), so that a server can tell a repetition. A status of `retry.on.status.codes` or a connection that breaks is
tried again; another refusal is the verdict of the record. A batch that is refused is sent again record by record, to
find out which.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

from ottla.connect import spi
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.record import ConnectRecord, SchemaAndValue

LARGEST_ANSWER: Final = 64 << 10
"""More of an answer is not read."""
TOKEN_MARGIN_S: Final = 30.0
"""A token that ends sooner is not used any more."""


class HttpSinkConfig(spi.Config):
    http_api_url: Annotated[str | None, msgspec.Meta(description="Where requests go; `${topic}` is filled in.")] = None
    http_url: Annotated[str | None, msgspec.Meta(description="The same, as Aiven's connector calls it.")] = None
    request_method: Annotated[Literal["POST", "PUT", "PATCH", "post", "put", "patch"], msgspec.Meta()] = "POST"
    headers: Annotated[str, msgspec.Meta(description="`name:value`, several separated by `|`.")] = ""
    http_headers_additional: Annotated[list[str], msgspec.Meta(description="`name:value`, by commas.")] = []  # noqa: RUF012
    http_headers_content_type: Annotated[str, msgspec.Meta(description="The content type of requests.")] = (
        "application/json"
    )
    batch_max_size: Annotated[int, msgspec.Meta(ge=1, le=100_000, description="Records in one request.")] = 1
    batch_prefix: Annotated[str, msgspec.Meta(description="Before the first of several.")] = "["
    batch_suffix: Annotated[str, msgspec.Meta(description="Behind the last of several.")] = "]"
    batch_separator: Annotated[str, msgspec.Meta(description="Between them.")] = ","
    batch_json_as_array: Annotated[bool, msgspec.Meta(description="A request of one record is a list too.")] = False
    retry_on_status_codes: Annotated[str, msgspec.Meta(description="Such as `429,500-` or `503,504`.")] = (
        "408,425,429,500-"
    )
    request_timeout_ms: Annotated[int, msgspec.Meta(ge=1, description="How long an answer is waited for.")] = 30_000
    auth_type: Annotated[
        Literal["none", "basic", "bearer", "oauth2", "hmac"], msgspec.Meta(description="How requests are authorised.")
    ] = "none"
    http_authorization_type: Annotated[
        Literal["none", "static", "oauth2"] | None, msgspec.Meta(description="The same in Aiven's words.")
    ] = None
    http_headers_authorization: spi.Secret | None = None
    auth_bearer_token: spi.Secret | None = None
    connection_user: str | None = None
    connection_password: spi.Secret | None = None
    oauth2_token_url: str | None = None
    oauth2_access_token_url: str | None = None
    oauth2_client_id: str | None = None
    oauth2_client_secret: spi.Secret | None = None
    oauth2_client_scope: str | None = None
    hmac_secret: spi.Secret | None = None
    hmac_header: Annotated[str, msgspec.Meta(description="Where the signature of the body stands.")] = "X-Signature"
    behavior_on_null_values: Annotated[
        Literal["ignore", "fail", "send"], msgspec.Meta(description="What is done with a record without a value.")
    ] = "ignore"


class _Answer(NamedTuple):
    status: int
    body: str
    retry_after_s: float | None


class _Piece(NamedTuple):
    """One request."""

    places: list[int]
    """Of its records in the batch."""
    topic: str
    key: str
    body: bytes


class HttpSink(spi.Sink[HttpSinkConfig]):
    batch_records = 2_000

    def __init__(self, config: HttpSinkConfig, name: str) -> None:
        super().__init__(config, name)
        self._json = JsonConverter({"schemas.enable": "false"}, "value")
        self._connections: dict[tuple[str, str], http.client.HTTPConnection] = {}
        self._token: tuple[str, float] | None = None
        self._done: set[str] = set()
        """Keys of requests of this micro-batch that were answered: what is tried again leaves them out."""
        self._retried = _Codes(config.retry_on_status_codes)

    @property
    def _url(self) -> str:
        return self.config.http_api_url or self.config.http_url or ""

    @property
    def _auth(self) -> str:
        aiven = self.config.http_authorization_type
        return {"static": "header", None: self.config.auth_type}.get(aiven, aiven or "none")

    def validate(self) -> None:
        config = self.config
        if urlsplit(self._url).scheme not in ("http", "https") or not urlsplit(self._url).netloc:
            raise spi.ConfigRefused(
                "http.api.url", f"{self._url or 'nothing'} is no address of the kind http://host/path"
            )
        needed = {
            "oauth2": ("oauth2_client_id", "oauth2_client_secret"),
            "bearer": ("auth_bearer_token",),
            "basic": ("connection_user", "connection_password"),
            "hmac": ("hmac_secret",),
            "header": ("http_headers_authorization",),
        }
        for field in needed.get(self._auth, ()):
            if not getattr(config, field):
                raise spi.ConfigRefused(field.replace("_", "."), f"is needed for auth.type={self._auth}")
        if self._auth == "oauth2" and not (config.oauth2_token_url or config.oauth2_access_token_url):
            raise spi.ConfigRefused("oauth2.token.url", "is needed for auth.type=oauth2")

    def begin(self, spans: Sequence[spi.Span]) -> None:
        self._done.clear()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # A batch.

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        refused: list[spi.Refused] = []
        kept: list[int] = []
        for at, record in enumerate(batch.records):
            if record.value is not None or self.config.behavior_on_null_values == "send":
                kept.append(at)
            elif self.config.behavior_on_null_values == "fail":
                refused.append(spi.Refused(at, spi.BadRecord("it has no value, and behavior.on.null.values is fail")))
        for piece in self._pieces(batch.records, kept):
            refused += self._deliver(piece, batch.records)
        return refused

    def _pieces(self, records: Sequence[ConnectRecord], kept: Sequence[int]) -> Iterator[_Piece]:
        most = self.config.batch_max_size
        forming: list[int] = []
        for at in kept:
            if forming and (len(forming) == most or records[forming[0]].topic != records[at].topic):
                yield self._piece(records, forming)
                forming = []
            forming.append(at)
        if forming:
            yield self._piece(records, forming)

    def _piece(self, records: Sequence[ConnectRecord], places: list[int]) -> _Piece:
        config = self.config
        bodies = [self._body(records[at]) for at in places]
        first, last = records[places[0]], records[places[-1]]
        key = f"{first.topic}-{first.partition}-{first.offset}"
        if len(places) == 1 and not config.batch_json_as_array:
            return _Piece(places, first.topic, key, bodies[0])
        body = config.batch_separator.encode().join(bodies)
        if len(places) > 1:
            key += f"-{last.partition}-{last.offset}"
        return _Piece(places, first.topic, key, config.batch_prefix.encode() + body + config.batch_suffix.encode())

    def _body(self, record: ConnectRecord) -> bytes:
        value = record.value
        if isinstance(value, bytes):
            return value
        if isinstance(value, str) and self.config.batch_max_size == 1:
            return value.encode()
        return self._json.write(record.topic, SchemaAndValue(record.value_schema, value)) or b"null"

    def _deliver(self, piece: _Piece, records: Sequence[ConnectRecord]) -> list[spi.Refused]:
        if piece.key in self._done:
            return []
        answer = self._send(piece)
        if 200 <= answer.status < 300:
            self._done.add(piece.key)
            return []
        if len(piece.places) > 1:
            alone = [self._piece(records, [at]) for at in piece.places]
            return [refused for each in alone for refused in self._deliver(each, records)]
        self._done.add(piece.key)
        return [spi.Refused(piece.places[0], spi.BadRecord(f"the server answered {answer.status}: {answer.body}"))]

    def _send(self, piece: _Piece) -> _Answer:
        """Raises TryAgain, ConnectorFailed."""
        url = self._url.replace("${topic}", piece.topic)
        answer = self._request(self.config.request_method.upper(), url, piece.body, self._headers(piece))
        if answer.status == 401 and self._auth == "oauth2":  # a token may be taken back before its time
            self._token = None
            answer = self._request(self.config.request_method.upper(), url, piece.body, self._headers(piece))
        if answer.status in (401, 403, 407):
            raise spi.ConnectorFailed(
                f"{url} answered {answer.status}: {answer.body}. Credentials (auth.type={self._auth}) have to be mended"
            )
        if answer.status in self._retried:
            raise spi.TryAgain(f"{url} answered {answer.status}: {answer.body}", after_s=answer.retry_after_s)
        return answer

    def _headers(self, piece: _Piece) -> dict[str, str]:
        config = self.config
        found = {"Content-Type": config.http_headers_content_type, "Idempotency-Key": piece.key}
        for pair in (*config.headers.split("|"), *config.http_headers_additional):
            name, _, value = pair.partition(":")
            if name.strip():
                found[name.strip()] = value.strip()
        match self._auth:
            case "bearer":
                found["Authorization"] = f"Bearer {config.auth_bearer_token}"
            case "header":
                found["Authorization"] = config.http_headers_authorization or ""
            case "basic":
                pair = f"{config.connection_user}:{config.connection_password}"
                found["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            case "oauth2":
                found["Authorization"] = f"Bearer {self._oauth_token()}"
            case "hmac":
                signature = hmac.new((config.hmac_secret or "").encode(), piece.body, hashlib.sha256).hexdigest()
                found[config.hmac_header] = f"sha256={signature}"
        return found

    def _oauth_token(self) -> str:
        """By client credentials (RFC 6749, 4.4); kept until shortly before it ends."""
        if self._token is not None and time.monotonic() < self._token[1]:
            return self._token[0]
        config = self.config
        url = config.oauth2_token_url or config.oauth2_access_token_url or ""
        form = {"grant_type": "client_credentials"}
        if config.oauth2_client_scope:
            form["scope"] = config.oauth2_client_scope
        pair = f"{config.oauth2_client_id}:{config.oauth2_client_secret}"
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
        }
        answer = self._request("POST", url, urlencode(form).encode(), headers)
        if answer.status >= 500 or answer.status == 429:
            raise spi.TryAgain(f"{url} gave no token: {answer.status}", after_s=answer.retry_after_s)
        try:
            told: Mapping[str, Any] = json.loads(answer.body)
            token = str(told["access_token"])
            lasts_s = float(told.get("expires_in", 300))
        except (ValueError, KeyError, TypeError) as error:
            raise spi.ConnectorFailed(f"{url} gave no token: it answered {answer.status}") from error
        self._token = (token, time.monotonic() + max(lasts_s - TOKEN_MARGIN_S, lasts_s / 2))
        return token

    # By wire.

    def _request(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        """Raises TryAgain when the server is away."""
        split = urlsplit(url)
        path = f"{split.path or '/'}{f'?{split.query}' if split.query else ''}"
        place = (split.scheme, split.netloc)
        kept = place in self._connections
        try:
            return self._asked(place, method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self._drop(place)
            if not kept or isinstance(error, TimeoutError):
                raise spi.TryAgain(
                    f"{split.scheme}://{split.netloc} does not answer: {str(error) or type(error).__name__}"
                ) from error
        try:  # a connection that was kept may have been closed by the other side in the meantime
            return self._asked(place, method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self._drop(place)
            raise spi.TryAgain(
                f"{split.scheme}://{split.netloc} does not answer: {str(error) or type(error).__name__}"
            ) from error

    def _asked(
        self, place: tuple[str, str], method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> _Answer:
        connection = self._connections.get(place)
        if connection is None:
            kind = http.client.HTTPSConnection if place[0] == "https" else http.client.HTTPConnection
            connection = kind(place[1], timeout=self.config.request_timeout_ms / 1000)
            self._connections[place] = connection
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        text = answer.read(LARGEST_ANSWER)
        if answer.read(1):
            self._drop(place)  # the rest is not worth reading
        return _Answer(answer.status, text.decode(errors="replace"), _seconds(answer.getheader("Retry-After")))

    def _drop(self, place: tuple[str, str]) -> None:
        connection = self._connections.pop(place, None)
        if connection is not None:
            connection.close()


class _Codes:
    """`400,500-` or `429,502-504`."""

    def __init__(self, text: str) -> None:
        self._ranges: list[tuple[int, int]] = []
        for part in text.split(","):
            if not part.strip():
                continue
            low, dash, high = part.strip().partition("-")
            try:
                self._ranges.append((int(low), int(high) if high else (599 if dash else int(low))))
            except ValueError as error:
                raise spi.ConfigRefused(
                    "retry.on.status.codes", f"{part!r} is no status code nor a range of them"
                ) from error

    def __contains__(self, status: int) -> bool:
        return any(low <= status <= high for low, high in self._ranges)


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else min(max(float(text), 0.0), 3600.0)
    except ValueError:
        return None  # a date: the usual pauses will do
