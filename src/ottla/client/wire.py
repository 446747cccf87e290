"""One client connection without its socket: framing, correlation, version negotiation. Bytes in, messages out.

The blocking `connection` drives it; an asyncio face can do the same without a line changed here.
"""

from collections import deque
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from ottla import __version__
from ottla.client.errors import CorruptAnswer, NotKafka, UnsupportedApi
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError, Message
from ottla.protocol.frames import API_VERSIONS, RequestHeader, decode_response_header, encode_request

HELLO_VERSION: Final = 4
"""ApiVersions v5 (KIP-1242) would cost a second round trip with every broker of the 4.3 level."""
MAX_FRAME_BYTES: Final = 256 << 20
"""A larger answer is not an answer: far above any fetch this client asks for."""
CLIENT_SOFTWARE: Final = "ottla"

_UNSUPPORTED_VERSION: Final = 35
_INT32 = Struct(">i")
_INT16 = Struct(">h")

R = TypeVar("R", bound=Message)


class _Pending(NamedTuple):
    correlation: int
    key: int
    version: int


class Answer(NamedTuple):
    """A response whose frame is complete; `decode` makes it a message."""

    correlation: int
    version: int
    frame: memoryview
    body: int

    def decode(self, response: type[R]) -> R:
        try:
            return response.decode(self.frame, self.version, self.body)
        except DecodeError as error:
            raise CorruptAnswer(f"the answer is no {response.__name__} v{self.version}: {error}") from error


class Wire:
    """Requests become bytes in `request`; received bytes become answers in `received`, in the order of the requests."""

    __slots__ = ("_buffer", "_client_id", "_next_correlation", "_pending", "_ranges", "address")

    def __init__(self, address: str, client_id: str) -> None:
        self.address = address
        self._client_id = client_id
        self._next_correlation = 0
        self._pending: deque[_Pending] = deque()
        self._buffer = bytearray()
        self._ranges: dict[int, tuple[int, int]] = {}

    @property
    def waiting(self) -> int:
        """Requests without an answer yet."""
        return len(self._pending)

    @property
    def is_greeted(self) -> bool:
        """What the other side speaks is known."""
        return bool(self._ranges)

    # Negotiation: hello, then greeted until it returns None.

    def hello(self, version: int = HELLO_VERSION) -> bytes:
        request = messages.ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE if version >= 3 else "",
            client_software_version=__version__ if version >= 3 else "",
        )
        return self._frame(request, version)

    def greeted(self, answer: Answer) -> bytes | None:
        """None: the ranges are known. Otherwise the hello to send instead: the broker is older than HELLO_VERSION and
        has answered in the v0 form with the range it has (KIP-511)."""
        refused = len(answer.frame) >= answer.body + 2 and (
            _INT16.unpack_from(answer.frame, answer.body)[0] == _UNSUPPORTED_VERSION
        )
        if refused:
            answer = answer._replace(version=0)
        offered = answer.decode(messages.ApiVersionsResponse)
        ranges = {api.api_key: (api.min_version, api.max_version) for api in offered.api_keys}
        if refused:
            retry_at = ranges.get(API_VERSIONS, (0, 0))[1]
            if retry_at >= HELLO_VERSION:
                raise NotKafka(self.address, "it refuses a version of ApiVersions that it offers")
            return self.hello(retry_at)
        if offered.error_code:
            raise NotKafka(self.address, f"its ApiVersions answer carries error {offered.error_code}")
        self._ranges = ranges
        return None

    def version_for(self, request: type[Message], at_most: int = 0x7FFF) -> int:
        """The highest version both sides have."""
        name = request.__name__.removesuffix("Request")
        offered = self._ranges.get(request.API_KEY)
        if offered is None:
            raise UnsupportedApi(self.address, name, "it is not in the broker's list")
        ours = [version for version in request.ENCODERS if offered[0] <= version <= min(offered[1], at_most)]
        if not ours:
            low, high = min(request.ENCODERS), min(max(request.ENCODERS), at_most)
            raise UnsupportedApi(
                self.address, name, f"it has versions {offered[0]} to {offered[1]}, known here are {low} to {high}"
            )
        return max(ours)

    # The conversation.

    def request(self, request: Message, *, at_most: int = 0x7FFF, expect_answer: bool = True) -> tuple[int, bytes]:
        """Correlation id and the whole frame. A Produce with acks=0 is the one request without an answer."""
        version = self.version_for(type(request), at_most)
        correlation = self._next_correlation
        frame = self._frame(request, version)
        if not expect_answer:
            self._pending.pop()
        return correlation, frame

    def _frame(self, request: Message, version: int) -> bytes:
        correlation = self._next_correlation
        frame = encode_request(RequestHeader(request.API_KEY, version, correlation, self._client_id), request)
        self._next_correlation = (correlation + 1) & 0x7FFFFFFF
        self._pending.append(_Pending(correlation, request.API_KEY, version))
        return frame

    def received(self, data: bytes) -> list[Answer]:
        self._buffer += data
        answers: list[Answer] = []
        while len(self._buffer) >= 4:
            size = self._frame_size()
            if len(self._buffer) < 4 + size:
                break
            frame = memoryview(bytes(memoryview(self._buffer)[4 : 4 + size]))
            del self._buffer[: 4 + size]
            answers.append(self._answer(frame))
        return answers

    def missing(self) -> int:
        """Bytes that the next answer still lacks, as far as it can be told: how much is worth reading at once."""
        if len(self._buffer) < 4:
            return 4 - len(self._buffer)
        return 4 + self._frame_size() - len(self._buffer)

    def _frame_size(self) -> int:
        size: int = _INT32.unpack_from(self._buffer)[0]
        if 4 <= size <= MAX_FRAME_BYTES and self._pending:
            return size
        start = bytes(self._buffer[:4])
        if start == b"HTTP":
            raise NotKafka(self.address, "it answers in HTTP")
        if start[:2] in (b"\x15\x03", b"\x16\x03"):
            raise NotKafka(self.address, "it answers in TLS: security.protocol has to be SSL or SASL_SSL")
        raise NotKafka(self.address, f"its first bytes are {start!r}")

    def _answer(self, frame: memoryview) -> Answer:
        pending = self._pending.popleft()
        try:
            correlation, body = decode_response_header(frame, pending.key, pending.version)
        except DecodeError as error:
            raise CorruptAnswer(f"{self.address} sent a frame without a whole header: {error}") from error
        if correlation != pending.correlation:
            raise CorruptAnswer(f"{self.address} answered request {correlation} where {pending.correlation} was next")
        return Answer(correlation, pending.version, frame, body)
