"""`python -m bench.registry_clients PORT WHAT REQUESTS SUBJECTS`: asks over 8 connections, and prints the seconds."""

import asyncio
import json
import sys
import time

from bench.workloads.registry import schema_of

CONNECTIONS = 8


def request_of(what: str, number: int, subjects: int) -> bytes:
    if what == "by_id":
        return f"GET /schemas/ids/{number % 1_000 + 1} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
    if what == "find":
        return _post(f"/subjects/s{number % 100}", schema_of(number % 100))
    return _post(f"/subjects/new-{number}/versions", schema_of(subjects + number))


def _post(path: str, schema: str) -> bytes:
    body = json.dumps({"schema": schema}).encode()
    kind = "application/vnd.schemaregistry.v1+json"
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def ask_all(port: int, requests: list[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in requests:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        assert head.startswith(b"HTTP/1.1 200"), (head, body)
    writer.close()


async def main(port: int, what: str, count: int, subjects: int) -> float:
    requests = [request_of(what, number, subjects) for number in range(count)]
    await ask_all(port, requests[:1])  # loads what answers
    began = time.perf_counter()
    await asyncio.gather(*(ask_all(port, requests[first::CONNECTIONS]) for first in range(CONNECTIONS)))
    return time.perf_counter() - began


if __name__ == "__main__":
    _, given_port, given_what, given_count, given_subjects = sys.argv
    print(asyncio.run(main(int(given_port), given_what, int(given_count), int(given_subjects))))
