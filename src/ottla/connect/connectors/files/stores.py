"""Where files lie. A file appears whole or not at all: under its name only once all of it is written."""

import os
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from ottla.connect import spi
from ottla.connect.connectors.files.config import FilesConfig


class Store(Protocol):
    def put(self, path: str, data: bytes) -> None:
        """Raises TryAgain."""


class Folder:
    __slots__ = ("_root",)

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def put(self, path: str, data: bytes) -> None:
        target = self._root / path
        beside = target.with_name(f".{target.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        except OSError as error:
            raise spi.TryAgain(f"{target} cannot be written: {error.strerror or error}") from error


class Bucket:
    """By Arrow's own S3: a file is there once it is closed."""

    __slots__ = ("_files", "_name")

    def __init__(self, config: FilesConfig) -> None:
        from pyarrow import fs  # noqa: PLC0415  some tens of megabytes, for those who use it

        url = urlsplit(config.store_url)
        more = {"endpoint_override": url.netloc, "scheme": url.scheme} if config.store_url else {}
        self._name = config.s3_bucket_name
        self._files = fs.S3FileSystem(
            access_key=config.aws_access_key_id or None,
            secret_key=config.aws_secret_access_key or None,
            region=config.s3_region,
            **more,
        )

    def put(self, path: str, data: bytes) -> None:
        try:
            with self._files.open_output_stream(f"{self._name}/{path}") as stream:
                stream.write(data)
        except OSError as error:
            raise spi.TryAgain(f"s3://{self._name}/{path} cannot be written: {error}") from error


def store_of(config: FilesConfig) -> Store:
    """Raises ConfigRefused."""
    if bool(config.directory) == bool(config.s3_bucket_name):
        raise spi.ConfigRefused("s3.bucket.name", "give it, or directory: where the files lie")
    return Folder(config.directory) if config.directory else Bucket(config)
