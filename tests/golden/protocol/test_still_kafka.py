"""The committed results are still what Apache Kafka's jars say: generated codecs, golden corpus, error table."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.model import errors
from tests.support.jvm import java, kafka_jars

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

pytestmark = pytest.mark.jvm


def printed(jars: Path, source: str, *words: str) -> str:
    command = java(jars, str(HERE / source), *words)
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


def test_the_generated_codecs_are_up_to_date() -> None:
    """But for ApiVersions, which is taken from a later release."""
    command = [sys.executable, str(ROOT / "tools/generate_protocol.py"), "--check", str(kafka_jars())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    generated = "src/ottla/protocol/_generated"
    assert done.stderr.splitlines() == [
        f"out of date: {generated}/{name}.py" for name in ("api_versions_request", "api_versions_response", "tables")
    ]


def test_the_golden_corpus_is_what_kafka_writes() -> None:
    jars = kafka_jars()
    with gzip.open(HERE / "messages.jsonl.gz", "rt", encoding="utf-8") as golden:
        assert printed(jars, "Corpus.java", str(jars)) == golden.read()


def test_the_error_table_is_kafkas() -> None:
    ours = [f"{e.code} {e.name} {str(e.retriable).lower()}" for e in errors.Errors]
    assert printed(kafka_jars(), "Errors.java").splitlines() == ours
