"""Arrow without pandas, in a process of its own: whether something was imported cannot be taken back."""

import subprocess
import sys
from typing import Final

import pytest

pytest.importorskip("pyspark")

BEGINNING: Final = """
import sys
from ottla.pipelines.arrow_alone import leave_pandas_out
leave_pandas_out()
import pyarrow
pyarrow.array(["a", None])
pyarrow.Table.from_pylist([{"a": 1}])
assert "pandas" not in sys.modules
"""


FOUND: Final = "from importlib.util import find_spec; found = find_spec('pandas')"
SERIES: Final = "import pandas; print(pyarrow.array(pandas.Series([1.0, float('nan')])).null_count)"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("", ""),
        ("import pyspark.testing.utils; print('pandas' in sys.modules)", "False"),
        (f"{FOUND}; print(found is None, 'pandas' in sys.modules)", "False False"),
        (SERIES, "1"),
        (f"{FOUND}; {SERIES}", "1"),
        ("print(pyarrow.table({'a': [1]}).to_pandas().a.sum())", "1"),
        ("import pandas; leave_pandas_out(); print('pandas' in sys.modules)", "True"),
    ],
)
def test_pandas_is_imported_when_it_is_asked_for_and_arrow_knows_its_series_then(asked: str, told: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEGINNING + asked], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (told, 0), done.stderr
