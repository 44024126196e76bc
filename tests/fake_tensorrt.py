"""TensorRT's builder without TensorRT: what `engine.py` needs of 8.6, 10, 11 and of TensorRT for RTX, in memory.

A fake has the names that its version has and no more (read off the bindings' wheels), and no object takes an
attribute that the real one does not know: what only other versions have fails here.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import onnx
from fake_layers import computed, layers_from, told, type_of
from gpu.fakes import DataType, Engine, Logger, Severity

MAGIC = b"fake plan "
RTX = "1.7.1.116"
VERSIONS = ("8.6.0", "10.13.0", "11.4.0", RTX)
_VERSION_OF_TYPES = {"8.6.0": "8.6.0", "10.13.0": "10.13.0", "11.4.0": "11.4.0", RTX: "11.4.0"}
_WEAK_FLAGS = ["FP16", "INT8", "OBEY_PRECISION_CONSTRAINTS"]  # gone in 11 and in TensorRT for RTX


@dataclass
class Behaviour:
    """What a test wants to happen."""

    refused: Sequence[str] = ()  # operators
    compiles: bool = True
    timings_fit: bool = True
    renamed: str = ""  # the first output's name in the engine
    largest: int = 0  # rows of the profile in the engine, where it shall not be the one asked for
    names_only: bool = False  # what the inspector tells
    computes: str = ""  # a type that all is compiled in, whatever was asked for
    says: Sequence[str] = ()  # errors logged while compiling
    at: Callable[[str], None] = lambda phase: None  # called at parse, compile and load
    seen: dict[str, Any] = field(default_factory=dict)  # how the builder was used


class _Tensor:
    def __init__(self, value: onnx.ValueInfoProto, types: Any) -> None:
        kind = value.type.tensor_type
        self.name, self.dtype = value.name, type_of(kind.elem_type, types)
        self.shape = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim)


class _Network:
    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.inputs: list[_Tensor] = []
        self.outputs: list[_Tensor] = []
        self.layers: list[Any] = []

    num_inputs = property(lambda self: len(self.inputs))
    num_outputs = property(lambda self: len(self.outputs))
    num_layers = property(lambda self: len(self.layers))

    def get_input(self, index: int) -> _Tensor:
        return self.inputs[index]

    def get_output(self, index: int) -> _Tensor:
        return self.outputs[index]

    def get_layer(self, index: int) -> Any:
        return self.layers[index]


class _TimingCache:
    def __init__(self, data: bytes) -> None:
        self.lines = set(data.split())

    def combine(self, other: _TimingCache, _ignore: bool) -> bool:
        self.lines |= other.lines
        return True

    def serialize(self) -> bytes:
        return b" ".join(sorted(self.lines))


class _Profile:
    def __init__(self) -> None:
        self.shapes: dict[str, Any] = {}

    def set_shape(self, name: str, low: Any, middle: Any, high: Any) -> None:
        self.shapes[name] = (tuple(low), tuple(middle), tuple(high))


def package(version: str, behaviour: Behaviour | None = None) -> Any:
    """The module; `tensorrt_rtx` for its version, else `tensorrt`."""
    does = behaviour or Behaviour()
    old, rtx = version.startswith("8."), version == RTX
    weak = old or version.startswith("10.")
    module = ModuleType("tensorrt_rtx" if rtx else "tensorrt")
    module.__version__ = version
    types: Any = DataType[_VERSION_OF_TYPES[version]]
    module.ILogger, module.DataType = Logger, types
    creation = ["EXPLICIT_BATCH"] if old else ["EXPLICIT_BATCH", "STRONGLY_TYPED"] if weak else ["STRONGLY_TYPED"]
    module.NetworkDefinitionCreationFlag = IntEnum("NetworkDefinitionCreationFlag", creation, start=0)
    module.BuilderFlag = IntEnum("BuilderFlag", [*(_WEAK_FLAGS if weak else []), "DEBUG", "TF32"], start=0)
    module.ProfilingVerbosity = Enum("ProfilingVerbosity", ["LAYER_NAMES_ONLY", "DETAILED", "NONE"])
    module.MemoryPoolType = Enum("MemoryPoolType", ["WORKSPACE"])
    module.LayerInformationFormat = Enum("LayerInformationFormat", ["ONELINE", "JSON"])
    if rtx:
        module.ComputeCapability = Enum("ComputeCapability", ["NONE", "CURRENT", "SM75", "SM86", "SM89", "SM120"])
    if not old:
        module.IProgressMonitor = type("IProgressMonitor", (), {})
    module.Builder = _builder_class(_Config if old else _RtxConfig if rtx else _NewConfig, does, strong=not old)
    module.OnnxParser = _parser_class(types, does, old=old, weak=weak)
    module.Runtime = _runtime_class(version, does, rtx=rtx)
    return module


class _Config:
    """What every version's has."""

    __slots__ = (
        "_cache",
        "_fits",
        "builder_optimization_level",
        "cleared",
        "flags",
        "pools",
        "profiles",
        "profiling_verbosity",
    )

    def __init__(self, *, fits: bool) -> None:
        self._cache: Any = None
        self._fits = fits
        self.builder_optimization_level, self.profiling_verbosity = 3, None
        self.cleared: list[str] = []
        self.flags: list[str] = []
        self.pools: dict[str, int] = {}
        self.profiles: list[Any] = []

    def clear_flag(self, flag: Any) -> None:
        self.cleared.append(flag.name)

    def set_flag(self, flag: Any) -> None:
        self.flags.append(flag.name)

    def set_memory_pool_limit(self, pool: Any, size: int) -> None:
        self.pools[pool.name] = size

    def add_optimization_profile(self, profile: _Profile) -> int:
        self.profiles.append(profile.shapes)
        return len(self.profiles) - 1

    def create_timing_cache(self, data: bytes) -> Any:
        return _TimingCache(data)

    def set_timing_cache(self, cache: Any, _ignore: bool) -> bool:
        if cache.lines and not self._fits:
            return False
        self._cache = cache
        return True

    def get_timing_cache(self) -> Any:
        return self._cache


class _NewConfig(_Config):
    __slots__ = ("progress_monitor",)

    def __init__(self, *, fits: bool) -> None:
        super().__init__(fits=fits)
        self.progress_monitor: Any = None


class _RtxConfig(_NewConfig):
    __slots__ = ("aims", "num_compute_capabilities")

    def set_compute_capability(self, capability: Any, index: int) -> bool:
        assert index < self.num_compute_capabilities
        self.aims = {**getattr(self, "aims", {}), index: capability.name}
        return True


def _builder_class(config: type[_Config], does: Behaviour, *, strong: bool) -> Any:
    class Builder:
        def __init__(self, log: Any) -> None:
            self.log = log

        def create_network(self, flags: int = 0) -> _Network:
            return _Network(flags)

        def create_builder_config(self) -> _Config:
            return config(fits=does.timings_fit)

        def create_optimization_profile(self) -> _Profile:
            return _Profile()

        def build_serialized_network(self, network: _Network, config: Any) -> Any:
            does.seen |= {"flags": network.flags, "config": config, "network": network}
            _tell(getattr(config, "progress_monitor", None))
            does.at("compile")
            for line in does.says:
                self.log.log(Severity.ERROR, line)
            if not does.compiles:
                return None
            if config.get_timing_cache() is not None:
                config.get_timing_cache().lines.add(b"measured")
            return memoryview(_plan(network, config, does, strong=strong))

    return Builder


def _tell(monitor: Any) -> None:
    """One phase of four steps, the second of which has a phase of its own."""
    if monitor is None:
        return
    monitor.phase_start("Building", None, 4)
    monitor.step_complete("Building", 0)
    monitor.phase_start("Timing", "Building", 2)
    monitor.step_complete("Timing", 0)
    time.sleep(0)
    monitor.phase_finish("Timing")
    for step in range(1, 4):
        monitor.step_complete("Building", step)
    monitor.phase_finish("Building")


def _plan(network: _Network, config: Any, does: Behaviour, *, strong: bool) -> bytes:
    def tensors(values: list[_Tensor], *, renamed: str = "") -> list[Any]:
        names = [renamed or value.name if place == 0 else value.name for place, value in enumerate(values)]
        return [[name, value.dtype.name, value.shape] for name, value in zip(names, values, strict=True)]

    profiles = [
        {name: [low, middle, [does.largest or high[0], *high[1:]]] for name, (low, middle, high) in profile.items()}
        for profile in config.profiles
    ]
    layers = computed(network.layers, config.flags, strong=strong)
    said = {
        "inputs": tensors(network.inputs),
        "outputs": tensors(network.outputs, renamed=does.renamed),
        "profiles": profiles,
        "layers": [{**layer, "type": does.computes or layer["type"]} for layer in layers],
        "detailed": getattr(config.profiling_verbosity, "name", "") == "DETAILED",
    }
    return MAGIC + json.dumps(said).encode()


def _parser_class(types: Any, does: Behaviour, *, old: bool, weak: bool) -> Any:
    class OldError:
        def __init__(self, index: int, node: onnx.NodeProto) -> None:
            self._index, self._node = index, node

        def node(self) -> int:
            return self._index

        def desc(self) -> str:
            return f"No importer registered\nfor op: {self._node.op_type}"

    class NewError(OldError):
        def node_name(self) -> str:
            return self._node.name

        def node_operator(self) -> str:
            return self._node.op_type

    class Parser:
        def __init__(self, network: _Network, _log: Any) -> None:
            self._network = network
            self._errors: list[Any] = []

        num_errors = property(lambda self: len(self._errors))

        def get_error(self, index: int) -> Any:
            return self._errors[index]

        def parse(self, data: bytes) -> bool:
            does.at("parse")
            graph = onnx.load_from_string(data).graph
            kind = OldError if old else NewError
            self._errors = [kind(i, node) for i, node in enumerate(graph.node) if node.op_type in does.refused]
            self._network.inputs = [_Tensor(value, types) for value in graph.input]
            self._network.outputs = [_Tensor(value, types) for value in graph.output]
            self._network.layers = layers_from(data, types, weak=weak)
            return not self._errors

    return Parser


def _runtime_class(version: str, does: Behaviour, *, rtx: bool) -> Any:
    class Inspected(Engine):
        layers: Sequence[Any] = ()

        def create_engine_inspector(self) -> Any:
            return SimpleNamespace(get_engine_information=self._information)

        def _information(self, _format: Any) -> str:
            if does.names_only:
                return json.dumps({"Layers": [" + ".join(layer["nodes"]) for layer in self.layers]})
            return told(self.layers, version)

    class Runtime:
        def __init__(self, log: Any) -> None:
            self.log = log

        def deserialize_cuda_engine(self, plan: bytes) -> Any:
            does.at("load")
            if rtx or not plan.startswith(MAGIC):  # RTX: there is no GPU
                return None
            said = json.loads(plan.removeprefix(MAGIC))

            def tensors(values: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
                return {name: (kind, tuple(shape)) for name, kind, shape in values}

            engine = Inspected(
                inputs=tensors(said["inputs"]),
                outputs=tensors(said["outputs"]),
                profiles=said["profiles"],
                version=version,
            )
            engine.layers = said["layers"] if said["detailed"] else ()
            return engine

    return Runtime


def in_process(version: str) -> dict[str, Any]:
    """A package's names, in a process of its own; `$FAKE_AT` says what happens there, e.g. `compile:wait`.

    `wait`: tell `$FAKE_SAYS` and wait to be ended. `die`: take the process down.
    """

    def at(phase: str) -> None:
        wanted, _, what = os.environ.get("FAKE_AT", "").partition(":")
        if wanted != phase:
            return
        if what == "die":
            print("munmap_chunk(): invalid pointer", file=sys.stderr, flush=True)  # noqa: T201
            os.abort()
        Path(os.environ["FAKE_SAYS"]).write_text(f"{phase} {os.getpid()}")
        time.sleep(60)

    names = vars(package(version, Behaviour(at=at)))
    return {name: value for name, value in names.items() if name == "__version__" or not name.startswith("__")}
