"""`ottla start --secure` from nothing: to the first record that a client has had acknowledged who logged in over TLS.

The node makes an authority, certificates, an administrator and his password, and tells them; the client (librdkafka in
this process) is made from the lines that it printed.
"""

import json
import re
import shutil
import socket
import subprocess
import time

from confluent_kafka import Producer

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, value_at_most
from bench.process_cost import cpu_of
from bench.servers import Ottla, free_ports

NAME = "secure_start"
METRICS = (
    Metric("seconds", "to the first record of an authenticated client", "s", value_at_most(1)),
    Metric("ready", "until the node is ready", "s"),
    Metric("cpu", "CPU of that", "s"),
)
PATIENCE_SECONDS = 60.0


def run(context: Context) -> list[Measure]:
    trials = [trial(context) for _ in range(context.rounds + 1)][1:]  # the first finds cold files
    return [
        Measure("ottla start --secure", metric, (), tuple(each[metric.key] for each in trials)) for metric in METRICS
    ]


def trial(context: Context) -> dict[str, float]:
    data = context.directory / "secured"
    port = two_free_ports()
    command = [str(Ottla.executable), "start", "--secure", "--port", str(port), "--data", str(data)]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            told = []
            assert process.stdout is not None
            for line in process.stdout:
                told.append(line)
                if "stop with Ctrl-C" in line:
                    break
            ready, cpu = time.perf_counter() - began, cpu_of(process.pid).total
            pasted = re.search(r"\{.*?\}", "".join(told), re.DOTALL)
            if pasted is None:
                raise ToolFailed(f"ottla start --secure told no settings: {told}")
            produce(json.loads(pasted.group()), process)
            seconds = time.perf_counter() - began
        finally:
            process.terminate()
    for directory in (data, data.with_name("secured.security")):
        shutil.rmtree(directory)
    return {"seconds": seconds, "ready": ready, "cpu": cpu}


def two_free_ports() -> int:
    """The first of them: the one above it is the controller's."""
    while True:
        (port,) = free_ports(1)
        with socket.socket() as above:
            try:
                above.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
        return port


def produce(settings: dict[str, str], node: "subprocess.Popen[str]") -> None:
    refused: list[object] = []
    producer = Producer({**settings, "log_level": 0, "linger.ms": 0})
    producer.produce("first", b"x", on_delivery=lambda error, _: refused.append(error))
    producer.flush(PATIENCE_SECONDS)
    if refused != [None]:
        fate = "runs" if node.poll() is None else f"ended with {node.returncode}"
        raise ToolFailed(f"the first record was not taken: {refused}; the node {fate}")
