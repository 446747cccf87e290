"""The wall clock that a node sees, by libfaketime. Its monotonic clock stays true, as when a clock is set by hand."""

import os
from pathlib import Path
from typing import Final

_SLEEP_MENDED: Final = Path(__file__).parent / "faked"


class WallClock:
    """One node's clock. `environment` is what its process must be started with."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # or all timers of the process fire at once
            "FAKETIME_NO_CACHE": "1",
            "PYTHONPATH": os.pathsep.join([str(_SLEEP_MENDED), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        }
        self.set(0)

    def set(self, ahead_seconds: int) -> None:
        """So far from the truth, from now on. The file is replaced: a reader never finds half of it."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead_seconds:+d}s\n")
        new.replace(self._file)


def faketime_library() -> Path | None:
    """Where Debian and its kin put it; OTTLA_LIBFAKETIME names another place."""
    named = os.environ.get("OTTLA_LIBFAKETIME")
    if named:
        return Path(named)
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
