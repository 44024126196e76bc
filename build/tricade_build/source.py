"""An ONNX file as it was given."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from .errors import FoldError
from .spec import METADATA


@dataclass(frozen=True)
class Source:
    """The file at `path`; read when it is first asked for."""

    path: Path

    @cached_property
    def model(self) -> onnx.ModelProto:
        return self._loaded(external=True)

    @cached_property
    def sha256(self) -> str:
        """Over the file and the weights that it keeps in other files."""
        others = sorted(_external_files(self._loaded(external=False)))
        digest = hashlib.sha256()
        for file in (self.path, *(self.path.parent / name for name in others)):
            digest.update(_bytes(file))
        return digest.hexdigest()

    def _loaded(self, *, external: bool) -> onnx.ModelProto:
        try:
            return onnx.load(self.path, load_external_data=external)
        except DecodeError as error:
            raise FoldError(f"expected an ONNX file; {self.path} is none ({error})") from error
        except (OSError, onnx.checker.ValidationError) as error:
            raise FoldError(f"expected {self.path} and its external data; {error}") from error

    def names(self, labels: tuple[str, ...] | str) -> tuple[str, ...]:
        """The labels themselves: as given, out of a file, or out of the graph's metadata."""
        if isinstance(labels, tuple):
            return labels
        text = self._metadata(labels.removeprefix(METADATA)) if labels.startswith(METADATA) else _text(Path(labels))
        return tuple(text.removesuffix("\n").split("\n"))

    def _metadata(self, key: str) -> str:
        found = {entry.key: entry.value for entry in self.model.metadata_props}
        if not found.get(key):
            keys = ", ".join(sorted(found)) or "there are none"
            raise FoldError(f"expected metadata {key!r} in {self.path.name}, found {keys}; give the labels in a file")
        return found[key]


def _text(file: Path) -> str:
    try:
        return _bytes(file).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise FoldError(f"expected one label a line in {file}, as UTF-8; {error}") from error


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise FoldError(f"expected to read {file}; {error}") from error


def _external_files(model: onnx.ModelProto) -> set[str]:
    return {
        entry.value
        for tensor in model.graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
