"""A node that nobody asked to be secured pays for none of it: measured by what is loaded, since a clock is noise."""

import subprocess
import sys
from pathlib import Path

NONE_OF = (
    "ottla.security.acls",
    "ottla.security.sasl",
    "ottla.security.tls",
    "ottla.broker.front.login",
    "ottla.broker.security.standard",
    "ottla.net.handshakes",
    "ottla.net.secured",
    "ottla.net.tls",
    "ottla.node.logins",
    "ottla.node.tls",
    "cryptography",
    "jwt",
)
PROGRAM = """
import asyncio, sys
from ottla.model.properties import Settings
from ottla.node.node import Node

async def run():
    given = dict(each.split("=", 1) for each in sys.argv[2:])
    given["listeners"] = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    node = Node(Settings.defaults(sys.argv[1], **given))
    await node.start()
    print(*sys.modules)
    await node.stop()

asyncio.run(run())
"""


def loaded(directory: Path, *settings: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(directory), *settings], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return {name for name in ran.stdout.split() if name.startswith(NONE_OF)}


def test_an_unsecured_node_loads_nothing_of_tls_logins_and_acls(tmp_path: Path) -> None:
    assert loaded(tmp_path) == set()


def test_it_would_be_seen_here_if_it_did(tmp_path: Path) -> None:
    asked = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert "ottla.security.acls" in loaded(tmp_path, asked, "super.users=User:ANONYMOUS")
