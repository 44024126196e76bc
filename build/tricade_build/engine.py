"""`compile_plan`: an ONNX graph to a TensorRT plan, through the builder of TensorRT 8.6, 10, 11 or TensorRT for RTX.

One code path: what only some of them have is asked for with `hasattr`, never by version. The package itself is an
argument, so tests compile with small fakes.

TF32 is off: it keeps 10 of 23 bits, so `fp32` would not mean what ONNX Runtime computes for the same graph. Whoever
wants speed asks for fp16, which is faster still and whose loss is measured.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from tricade.errors import EngineMisfit
from tricade.plan import Profile, check_fit
from tricade.stage import ModelSpec, Tensor
from tricade.tensorrt_log import log_class

from .engine_found import check_precision, found_in_engine, found_in_network
from .engine_timings import Timings
from .engine_typed import bind_types
from .engine_work import work_of
from .errors import EngineError, ParseError, Unparsed
from .stable_softmax import stabilized
from .wires import wires_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Range:
    """The smallest, the likeliest and the largest shape of an input."""

    smallest: Shape
    likeliest: Shape
    largest: Shape

    def check(self, name: str) -> None:
        """`EngineError` unless each is within the next; TensorRT has no dimension of 0 either."""
        columns = list(zip(self.smallest, self.likeliest, self.largest, strict=False))
        same = len(self.smallest) == len(self.likeliest) == len(self.largest)
        if not same or not all(1 <= low <= middle <= high for low, middle, high in columns):
            raise EngineError(
                f"expected shapes of {name} with 1 <= smallest <= likeliest <= largest; got {list(self.smallest)}, "
                f"{list(self.likeliest)}, {list(self.largest)}; change max_batch, opt_batch or widths"
            )


@dataclass(frozen=True)
class Recipe:
    """All that a plan depends on, apart from the graph, the library and the GPU."""

    model: str
    inputs: tuple[Tensor, ...]  # without the batch, as `config.pbtxt` has them
    outputs: tuple[Tensor, ...]
    max_batch: int
    profile: Mapping[str, Range]
    capabilities: tuple[str, ...] = ()  # to compile for without a GPU, e.g. 8.9; () is for the GPU that is here
    optimization_level: int | None = None  # None leaves it to TensorRT
    workspace_bytes: int | None = None  # None is all of the GPU's memory
    precision: str = "fp32"  # that of the graph, which the plan has to compute in too

    def check(self) -> None:
        """What can be known to be wrong before anything is compiled."""
        for name, shapes in self.profile.items():
            shapes.check(name)

    @property
    def extremes(self) -> Profile:
        """The profile as a plan tells it."""
        return Profile(
            {name: shapes.smallest for name, shapes in self.profile.items()},
            {name: shapes.largest for name, shapes in self.profile.items()},
        )

    @property
    def spec(self) -> ModelSpec:
        """What the model's configuration will say."""
        return ModelSpec(self.model, Path(), 1, {}, self.inputs, self.outputs, self.max_batch, instances=1)


@dataclass(frozen=True)
class Compiled:
    """A plan, and what was found in it."""

    plan: bytes
    precisions: Mapping[str, int]  # layers that carry the work and compute in each, e.g. {"fp16": 55, "fp32": 2}
    flags: tuple[str, ...]
    optimization_level: int


def compile_plan(trt: Any, graph: bytes, recipe: Recipe, *, timings: Timings, monitor: Any = None) -> Compiled:
    """Parse, compile, read back; raises `EngineError`."""
    recipe.check()
    model = stabilized(onnx.load_from_string(graph))
    log = log_class(trt)()
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(log, "")
    builder = trt.Builder(log)
    network = builder.create_network(_network_flags(trt))
    _parse(trt, network, model.SerializeToString(), log)
    wires = wires_of(model)
    work = work_of(wires)
    config = builder.create_builder_config()
    flags = _configure(trt, builder, config, network, recipe)
    if not _is_strongly_typed(trt):
        flags += bind_types(trt, config, network, wires)
    if monitor is not None and hasattr(config, "progress_monitor"):
        config.progress_monitor = monitor
    with timings.used_by(config):
        memory = builder.build_serialized_network(network, config)
    if memory is None:
        raise EngineError(f"TensorRT {trt.__version__} does not compile {recipe.model}: {log.told()}")
    plan = bytes(memory)
    # Ahead of time there may be no GPU to load the plan on. Those networks are strongly typed: they say it all.
    if recipe.capabilities:
        seen, precisions = found_in_network(network, recipe.extremes)
    else:
        seen, precisions = found_in_engine(trt, plan, log, network, work)
    try:
        check_fit(recipe.spec, seen)
    except EngineMisfit as error:
        raise EngineError(f"expected a plan as {recipe.model} is configured; {error}") from error
    check_precision(recipe.precision, Counter(work.precisions.values()), precisions, model=recipe.model)
    return Compiled(plan, precisions, flags, int(config.builder_optimization_level))


def _is_strongly_typed(trt: Any) -> bool:
    return hasattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED")


def _network_flags(trt: Any) -> int:
    """Types as the graph has them where there is a choice (from 10 on); before, the batch among the dimensions."""
    flags = trt.NetworkDefinitionCreationFlag
    for name in ("STRONGLY_TYPED", "EXPLICIT_BATCH"):
        if hasattr(flags, name):
            return 1 << int(getattr(flags, name))
    return 0


def _parse(trt: Any, network: Any, graph: bytes, log: Any) -> None:
    parser = trt.OnnxParser(network, log)
    if parser.parse(graph):
        return
    problems = list(dict.fromkeys(_unparsed(parser, graph)))
    if not problems:
        raise EngineError(f"TensorRT {trt.__version__} does not take the graph: {log.told()}")
    raise ParseError(trt.__version__, problems)


def _unparsed(parser: Any, graph: bytes) -> Iterator[Unparsed]:
    nodes = onnx.load_from_string(graph).graph.node
    for place in range(parser.num_errors):
        error = parser.get_error(place)
        index = error.node()
        # TensorRT 8 tells a node's number only; below 0, no node is to blame.
        known = nodes[index] if 0 <= index < len(nodes) else onnx.NodeProto()
        name = error.node_name() if hasattr(error, "node_name") else known.name
        op = error.node_operator() if hasattr(error, "node_operator") else known.op_type
        yield Unparsed(op or known.op_type, name or known.name, " ".join(error.desc().split()))


def _configure(trt: Any, builder: Any, config: Any, network: Any, recipe: Recipe) -> tuple[str, ...]:
    """Everything that the builder is told; the flags that are set or cleared, for the record."""
    told = []
    if hasattr(trt.BuilderFlag, "TF32"):
        config.clear_flag(trt.BuilderFlag.TF32)
        told.append("-TF32")
    # Layers can only be read back with their types if this is asked for; it costs some bytes of plan.
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if recipe.optimization_level is not None:
        config.builder_optimization_level = recipe.optimization_level
    if recipe.workspace_bytes is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, recipe.workspace_bytes)
    # TensorRT 8 has one execution context a profile unless asked; the stand-in wants one for each CUDA graph.
    sharing = getattr(getattr(trt, "PreviewFeature", None), "PROFILE_SHARING_0806", None)
    if sharing is not None:
        config.set_preview_feature(sharing, True)
        told.append("PROFILE_SHARING_0806")
    if recipe.capabilities:
        _aim(trt, config, recipe.capabilities)
    _add_profile(builder, config, network, recipe)
    return tuple(told)


def known_capabilities(trt: Any) -> tuple[str, ...]:
    """What this package compiles for without such a GPU, e.g. 7.5; none where it cannot."""
    names = getattr(getattr(trt, "ComputeCapability", None), "__members__", ())
    return tuple(f"{name[2:-1]}.{name[-1]}" for name in names if re.fullmatch(r"SM\d{2,}", name))


def _aim(trt: Any, config: Any, capabilities: tuple[str, ...]) -> None:
    known = known_capabilities(trt)
    if unknown := [capability for capability in capabilities if capability not in known]:
        raise EngineError(
            f"expected compute capabilities out of {', '.join(known) or 'none'}, for which this TensorRT compiles "
            f"without a GPU; got {unknown[0]}"
        )
    config.num_compute_capabilities = len(capabilities)
    for place, capability in enumerate(capabilities):
        config.set_compute_capability(getattr(trt.ComputeCapability, "SM" + capability.replace(".", "")), place)


def _add_profile(builder: Any, config: Any, network: Any, recipe: Recipe) -> None:
    profile = builder.create_optimization_profile()
    inputs = [network.get_input(place) for place in range(network.num_inputs)]
    for tensor in inputs:
        if tensor.name not in recipe.profile:
            raise EngineError(f"expected the inputs {', '.join(recipe.profile)}; the graph has {tensor.name}")
        shapes = recipe.profile[tensor.name]
        shape = tuple(tensor.shape)
        for wanted in (shapes.smallest, shapes.likeliest, shapes.largest):
            if len(wanted) != len(shape) or any(
                side not in (-1, size) for side, size in zip(shape, wanted, strict=True)
            ):
                raise EngineError(f"expected {tensor.name} to take {list(wanted)}; in the graph it is {list(shape)}")
        profile.set_shape(tensor.name, shapes.smallest, shapes.likeliest, shapes.largest)
    if config.add_optimization_profile(profile) < 0:
        raise EngineError(f"TensorRT refuses the profile {dict(recipe.profile)}")
