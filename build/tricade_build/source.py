"""An ONNX file as it was given."""

from __future__ import annotations

import ast
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
        assert self.sha256  # says what is missing
        return self._loaded(external=True)

    @cached_property
    def sha256(self) -> str:
        """Over the file and the weights that it keeps in other files."""
        others = sorted(_external_files(self._loaded(external=False)))
        if missing := [name for name in others if not (self.path.parent / name).is_file()]:
            raise FoldError(
                f"expected the weights of {self.path.name} in {missing[0]} beside it, as the file says; there is "
                "none; copy both files together, or export the model into one"
            )
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
        if labels.startswith(METADATA):
            return _listed(self._metadata(labels.removeprefix(METADATA)))
        return tuple(_text(Path(labels)).removesuffix("\n").split("\n"))

    @property
    def known_names(self) -> tuple[str, ...] | None:
        """The classes that the file itself names, as Ultralytics writes them; None where it does not."""
        text = self._entries().get("names", "").strip()
        return _listed(text) if text[:1] in ("{", "[") else None

    def _entries(self) -> dict[str, str]:
        return {entry.key: entry.value for entry in self.model.metadata_props}

    def _metadata(self, key: str) -> str:
        found = self._entries()
        if not found.get(key):
            keys = ", ".join(sorted(found)) or "there are none"
            raise FoldError(f"expected metadata {key!r} in {self.path.name}, found {keys}; give the labels in a file")
        return found[key]


def _listed(text: str) -> tuple[str, ...]:
    """One name a line; or Python's `{0: 'name', …}` or `['name', …]`, as exporters write them."""
    if text.strip()[:1] in ("{", "["):
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            return tuple(text.removesuffix("\n").split("\n"))
        if isinstance(value, dict) and sorted(value) == list(range(len(value))):
            return tuple(str(value[index]) for index in range(len(value)))
        if isinstance(value, list):
            return tuple(map(str, value))
    return tuple(text.removesuffix("\n").split("\n"))


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
