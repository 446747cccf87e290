"""Classes of ours in Spark's JVM: sources in `java/`, compiled once for each installation.

No JDK is needed: Spark has a compiler for its queries (Janino), which compiles files as well. What is made is a jar
named after the sources, so that a new version of ottla makes a new one.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("java")
COMPILER: Final = "org.codehaus.commons.compiler.samples.CompilerDemo"
SETTINGS: Final = {"spark.hadoop.fs.file.impl": "ottla.LocalFiles"}
"""Of a session that has them."""
PATIENCE_S: Final = 120.0
_LIGHT: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def sources() -> Sequence[Path]:
    return sorted(FOLDER.glob("*.java"))


def jar_in(folder: Path) -> Path:
    """Where it is, or is to be."""
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources())).hexdigest()
    return folder / f"ottla-{digest[:16]}.jar"


def make(jar: Path, java: Path, class_path: str) -> None:
    """Raises OSError, also when the compiler is not content."""
    with tempfile.TemporaryDirectory(prefix="ottla-classes-") as made:
        words = [str(java), *_LIGHT, "-cp", class_path, COMPILER, "-classpath", class_path, "-d", made]
        words += map(str, sources())
        done = subprocess.run(words, capture_output=True, check=False, timeout=PATIENCE_S)
        classes = sorted(Path(made).rglob("*.class"))
        if done.returncode or not classes:
            raise OSError(f"Spark's compiler made nothing of {FOLDER}: {done.stderr.decode(errors='replace').strip()}")
        jar.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(made, jar.name)
        with zipfile.ZipFile(draft, "w") as archive:
            for each in classes:
                archive.write(each, each.relative_to(made).as_posix())
        # In the folder of the jar, so that it is there as a whole or not at all.
        whole = jar.with_name(f".{jar.name}.{draft.parent.name}")
        whole.write_bytes(draft.read_bytes())
        whole.replace(jar)
