"""What an engine takes and gives, read off it without importing TensorRT, and whether that fits a model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import BadRequest, EngineMisfit
from .stage import Arrays, ModelSpec, Tensor

Shape = tuple[int, ...]  # -1 is any size

# TensorRT's name: Triton's name. The rest (BF16, FP8, INT4, FP4) no client can send or read.
_TRITON_TYPES = {
    "BOOL": "BOOL",
    "UINT8": "UINT8",
    "INT8": "INT8",
    "INT32": "INT32",
    "INT64": "INT64",
    "HALF": "FP16",
    "FLOAT": "FP32",
}
NUMPY_TYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "INT8": np.dtype(np.int8),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
}


@dataclass(frozen=True)
class Profile:
    """An optimization profile: the smallest and the largest shape of each input."""

    smallest: Mapping[str, Shape]
    largest: Mapping[str, Shape]

    def holds(self, shapes: Mapping[str, Shape]) -> bool:
        """Whether all of these inputs lie inside."""
        return all(
            len(shape) == len(self.smallest[name])
            and all(
                dim == -1 or low <= dim <= high
                for low, dim, high in zip(self.smallest[name], shape, self.largest[name], strict=True)
            )
            for name, shape in shapes.items()
        )

    @property
    def elements(self) -> int:
        """The size of its largest inputs together."""
        return sum(math.prod(shape) for shape in self.largest.values())

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {_dims(self.smallest[name])} to {_dims(self.largest[name])}" for name in self.smallest
        )


@dataclass(frozen=True)
class Plan:
    """An engine's tensors, with Triton's type names and the batch among the dims."""

    file: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    profiles: tuple[Profile, ...]

    def profile_for(self, shapes: Mapping[str, Shape]) -> int:
        """The number of the narrowest profile that holds the inputs; `BadRequest` where none does."""
        holding = [place for place, profile in enumerate(self.profiles) if profile.holds(shapes)]
        if not holding:
            came = ", ".join(f"{name} {_dims(shape)}" for name, shape in shapes.items())
            raise BadRequest(f"{self.file} takes {self.ranges()}, {came} came; keep inside, or build it wider")
        return min(holding, key=lambda place: self.profiles[place].elements)

    def check_inputs(self, inputs: Arrays) -> None:
        """`BadRequest` for missing, unknown, empty and mistyped inputs: an engine may crash on them."""
        expected = {tensor.name: NUMPY_TYPES[tensor.dtype] for tensor in self.inputs}
        if expected.keys() != inputs.keys():
            raise BadRequest(f"{self.file} takes {_names(self.inputs)}, {', '.join(inputs) or 'nothing'} came")
        for name, array in inputs.items():
            if array.size == 0:
                raise BadRequest(f"{name} {_dims(array.shape)} is empty, at least one row is expected; do not call")
            if array.dtype != expected[name]:
                raise BadRequest(f"{name} is {array.dtype}, {expected[name]} is expected; convert it")

    def ranges(self) -> str:
        return " or ".join(str(profile) for profile in self.profiles)


def plan_from_engine(engine: Any, file: str) -> Plan:
    """Read a deserialized engine; `EngineMisfit` for what cannot be fed or fetched through arrays."""
    if not hasattr(engine, "num_io_tensors"):
        raise EngineMisfit(f"{file} needs TensorRT 8.5 or later, this one knows no tensors by name; upgrade it")
    names = [engine.get_tensor_name(place) for place in range(engine.num_io_tensors)]
    tensors = [_tensor(engine, name, file) for name in names]
    inputs = tuple(tensor for tensor in tensors if engine.get_tensor_mode(tensor.name).name == "INPUT")
    outputs = tuple(tensor for tensor in tensors if tensor not in inputs)
    profiles = tuple(_profile(engine, inputs, place) for place in range(engine.num_optimization_profiles))
    return Plan(file, inputs, outputs, profiles)


def check_fit(spec: ModelSpec, plan: Plan) -> None:
    """`EngineMisfit` unless the plan has the configured tensors and takes every batch allowed."""
    _check_names(spec, plan)
    # A batch's size is compared below, and an output may be configured wider than it is.
    free = (0,) if spec.max_batch_size else ()
    for wanted, found in _pairs(spec, spec.inputs, plan.inputs):
        _check_tensor(plan, wanted, found, free=free)
    for wanted, found in _pairs(spec, spec.outputs, plan.outputs):
        _check_tensor(plan, wanted, found, free=range(len(wanted.dims)))
    _check_batches(spec, plan)


def check_outputs(spec: ModelSpec, plan: Plan, shapes: Mapping[str, Shape], *, batch: int) -> None:
    """Compare the outputs' shapes at inputs of that many rows, as the engine infers them, to the configured."""
    for wanted, _ in _pairs(spec, spec.outputs, plan.outputs):
        shape = shapes[wanted.name]
        if -1 in shape:
            raise EngineMisfit(
                f"{wanted.name} {_dims(shape)} of {plan.file} has a size that its data decide, "
                "a size known beforehand is expected; end the graph in a fixed number of rows (top-k)"
            )
        expected = (batch, *wanted.dims[1:]) if spec.max_batch_size else wanted.dims
        if not _agree(expected, shape, free=range(len(expected))):
            raise _misfit(
                f"says {wanted.name} is {_dims(expected)} for a batch of {batch}",
                plan.file,
                f"gives {_dims(shape)}",
            )


def largest_inputs(spec: ModelSpec, plan: Plan) -> Iterator[dict[str, Shape]]:
    """For every profile in use, the largest inputs that the configuration allows."""
    for profile in plan.profiles:
        rows = min(shape[0] for shape in profile.largest.values())
        shapes = _filled(_configured_shapes(spec, batch=rows), profile.largest)
        if profile.holds(shapes):
            yield shapes


def inputs_to_expect(spec: ModelSpec, plan: Plan, *, most: int) -> list[dict[str, Shape]]:
    """The largest that are allowed, then the narrowest with every number of rows, the fewest last; no more than `most`,
    but for one of each kind."""
    most_rows = max(1, spec.max_batch_size)
    largest = _held(plan, _configured_shapes(spec, batch=most_rows), [each.largest for each in plan.profiles])
    narrowest: list[dict[str, Shape]] = []
    for rows in range(1, most_rows + 1):
        narrowest += _held(plan, _configured_shapes(spec, batch=rows), [each.smallest for each in plan.profiles])
    few = [shapes for shapes in narrowest if shapes not in largest][: max(1, most - len(largest))]
    return largest + few[::-1]


def _held(plan: Plan, shapes: Mapping[str, Shape], sizes: Sequence[Mapping[str, Shape]]) -> list[dict[str, Shape]]:
    """The shapes with their open dims of each of `sizes`, where a profile holds them; each once."""
    filled = [_filled(shapes, each) for each in sizes]
    held = [each for each in filled if any(profile.holds(each) for profile in plan.profiles)]
    return [each for place, each in enumerate(held) if each not in held[:place]]


def _filled(shapes: Mapping[str, Shape], sizes: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shapes with their open dims taken from `sizes`."""
    return {
        name: tuple(size if dim == -1 else dim for dim, size in zip(shape, sizes[name], strict=True))
        for name, shape in shapes.items()
    }


def _configured_shapes(spec: ModelSpec, *, batch: int) -> dict[str, Shape]:
    """The inputs' shapes as configured, with that many rows where the model batches."""
    rows = (batch,) if spec.max_batch_size else ()
    return {tensor.name: (*rows, *tensor.dims) for tensor in spec.inputs}


def _tensor(engine: Any, name: str, file: str) -> Tensor:
    dtype, place = engine.get_tensor_dtype(name).name, engine.get_tensor_location(name).name
    layout = engine.get_tensor_format(name).name
    if dtype not in _TRITON_TYPES:
        raise EngineMisfit(
            f"{name} of {file} is {dtype}, expected is one of {', '.join(_TRITON_TYPES)}; cast it in the graph"
        )
    if place != "DEVICE" or layout != "LINEAR":
        raise EngineMisfit(
            f"{name} of {file} lies in {place} memory, laid out {layout}; DEVICE and LINEAR are expected: "
            "build without shape tensors as inputs and without other I/O formats"
        )
    return Tensor(name, _TRITON_TYPES[dtype], tuple(engine.get_tensor_shape(name)))


def _profile(engine: Any, inputs: Sequence[Tensor], place: int) -> Profile:
    ranges = {tensor.name: _range(engine, tensor, place) for tensor in inputs}
    return Profile(
        {name: smallest for name, (smallest, _) in ranges.items()},
        {name: largest for name, (_, largest) in ranges.items()},
    )


def _range(engine: Any, tensor: Tensor, place: int) -> tuple[Shape, Shape]:
    if -1 not in tensor.dims:  # outside every profile
        return tensor.dims, tensor.dims
    smallest, _, largest = engine.get_tensor_profile_shape(tensor.name, place)
    return tuple(smallest), tuple(largest)


def _check_names(spec: ModelSpec, plan: Plan) -> None:
    """All inputs must be configured; outputs beyond the configured are computed for nothing."""
    inputs, outputs = ({tensor.name for tensor in tensors} for tensors in (plan.inputs, plan.outputs))
    if inputs != {tensor.name for tensor in spec.inputs} or not outputs >= {tensor.name for tensor in spec.outputs}:
        raise _misfit(
            f"has the inputs {_names(spec.inputs)} and the outputs {_names(spec.outputs)}",
            plan.file,
            f"has the inputs {_names(plan.inputs)} and the outputs {_names(plan.outputs)}",
        )


def _check_tensor(plan: Plan, wanted: Tensor, found: Tensor, *, free: Sequence[int]) -> None:
    if wanted.dtype != found.dtype or not _agree(wanted.dims, found.dims, free=free):
        raise _misfit(f"says {_shown(wanted)}", plan.file, f"has {_shown(found)}")


def _pairs(spec: ModelSpec, wanted: Sequence[Tensor], found: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Configured tensors, with the batch among their dims, and the plan's of the same names."""
    rows = (-1,) if spec.max_batch_size else ()
    by_name = {tensor.name: tensor for tensor in found}
    for tensor in wanted:
        yield Tensor(tensor.name, tensor.dtype, (*rows, *tensor.dims)), by_name[tensor.name]


def _agree(wanted: Shape, found: Shape, *, free: Sequence[int]) -> bool:
    """Whether a plan's sizes fit the configured ones; -1 may be configured for any size only where `free`."""
    return len(wanted) == len(found) and all(
        one == other or other == -1 or (one == -1 and place in free)
        for place, (one, other) in enumerate(zip(wanted, found, strict=True))
    )


def _check_batches(spec: ModelSpec, plan: Plan) -> None:
    for batch in range(1, max(1, spec.max_batch_size) + 1):
        shapes = _configured_shapes(spec, batch=batch)
        if not any(profile.holds(shapes) for profile in plan.profiles):
            asked = ", ".join(f"{name} {_dims(shape)}" for name, shape in shapes.items())
            raise _misfit(
                f"has max_batch_size {spec.max_batch_size}, thus allows {asked}",
                plan.file,
                f"takes {plan.ranges()}",
            )


def _misfit(configured: str, file: str, built: str) -> EngineMisfit:
    return EngineMisfit(f"config.pbtxt {configured}, {file} {built}; change config.pbtxt or run: tricade build")


def _shown(tensor: Tensor) -> str:
    return f"{tensor.name} {tensor.dtype} {_dims(tensor.dims)}"


def _names(tensors: Sequence[Tensor]) -> str:
    return ", ".join(tensor.name for tensor in tensors)


def _dims(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"
