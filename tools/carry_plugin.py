"""Builds the pytest plugin's own wheel and lays its files into ottla's wheel, metadata and all.

Used by hatch (`pyproject.toml`). After the installation there are two distributions, ottla and pytest-ottla, from one
wheel: `docs/DECISIONS.md` says why.
"""

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilder, WheelBuilderConfig

_PLUGIN = "plugins/pytest-ottla"


class CarryPlugin(BuildHookInterface[WheelBuilderConfig]):
    """What lies in a wheel under `.data/purelib` goes to site-packages beside ottla itself. A second `.dist-info` at
    the top of the wheel would do the same, but pip refuses it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="pytest-ottla-")
        files = Path(self._scratch.name, "files")
        (wheel,) = WheelBuilder(str(Path(self.root, _PLUGIN))).build(
            directory=self._scratch.name, versions=["standard"]
        )
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(files)
        _without_version(files)
        builder = self.build_config.builder
        assert isinstance(builder, WheelBuilder)
        included = build_data["force_include_editable" if version == "editable" else "force_include"]
        for each in files.iterdir():
            included[str(each)] = f"{builder.artifact_project_id}.data/purelib/{each.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._scratch.cleanup()


def _without_version(files: Path) -> None:
    """`uv sync` removes what its lock file does not have, and would take the plugin out again. It passes over metadata
    whose directory names no version; Python, pip and pytest read the name inside."""
    (metadata,) = files.glob("*.dist-info")
    plain = metadata.with_name(f"{metadata.name.split('-')[0]}.dist-info")
    metadata.rename(plain)
    record = plain / "RECORD"
    record.write_text(record.read_text().replace(metadata.name, plain.name))
