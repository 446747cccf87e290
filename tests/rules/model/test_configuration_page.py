"""docs/CONFIGURATION.md is made from the table."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_configuration_page_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_configuration_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
