"""`python -m bench.sql_clients PORT WHAT COUNT`: asks a SQL server over one connection.

`pull` asks by key and prints p50 and p99 in ms and questions a second; `inserts` sends rows over HTTP/2 as the server
takes them, and prints acknowledged rows a second."""

import http.client
import json
import select
import socket
import sys
import time

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded

KEYS = 10_000


def pull(port: int, count: int) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    took: list[float] = []
    for number in range(count + 1):
        body = json.dumps({"sql": f"SELECT * FROM bench_items WHERE id = {number * 7919 % KEYS};"})
        began = time.perf_counter()
        connection.request("POST", "/query-stream", body, {"content-type": "application/json"})
        answer = connection.getresponse().read()
        took.append(time.perf_counter() - began)
        assert answer.count(b"\n") == 2, answer
    took = sorted(took[1:])  # the first one reads the table
    return [took[count // 2] * 1e3, took[count * 99 // 100] * 1e3, count / sum(took)]


def inserts(port: int, count: int, target: str = "BENCH_ITEMS") -> list[float]:
    form = b'{"ID":%d,"ITEM":"item number %d","PRICE":%d.25}\n'
    rows = (form % (each % KEYS, each, each % 50) for each in range(count))
    body = json.dumps({"target": target}).encode() + b"\n" + b"".join(rows)
    line = socket.create_connection(("127.0.0.1", port))
    talk = H2Connection(H2Configuration(header_encoding=None))
    talk.initiate_connection()
    head = {":method": "POST", ":path": "/inserts-stream", ":scheme": "http", ":authority": f"127.0.0.1:{port}"}
    talk.send_headers(1, list(head.items()))
    sent, answers, ended, began = 0, b"", False, time.perf_counter()
    while not ended:
        room = min(talk.local_flow_control_window(1), talk.max_outbound_frame_size, len(body) - sent)
        if room > 0:
            talk.send_data(1, body[sent : sent + room], end_stream=sent + room == len(body))
            sent += room
        line.sendall(talk.data_to_send())
        if not select.select([line], [], [], 0 if room > 0 else None)[0]:
            continue
        for event in talk.receive_data(line.recv(1 << 18)):
            match event:
                case DataReceived():
                    answers += event.data or b""
                    talk.acknowledge_received_data(event.flow_controlled_length or 0, 1)
                case StreamEnded():
                    ended = True
    acknowledged = answers.count(b'"ok"')
    assert acknowledged == count, answers[-300:]
    return [count / (time.perf_counter() - began)]


if __name__ == "__main__":
    _, given_port, given_what, given_count = sys.argv
    found = (pull if given_what == "pull" else inserts)(int(given_port), int(given_count))
    print(json.dumps(found))
