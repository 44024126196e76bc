"""Execution contexts, each bound to the shapes of one kind of execution, and the CUDA graphs captured from them.

A graph holds as long as its context stays as it was (TensorRT's guide to performance, "CUDA Graphs"), so a context
that has one is told no other shapes: those get a context of their own, up to a limit, then the one that was used
least recently. One context runs at a time, so that all share one piece of memory for activations.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cuda import Block, Device, Graph
from .engine import Engine, must
from .errors import StageError
from .plan import NUMPY_TYPES, Plan, Shape
from .stage import Tensor

ALIGNMENT = 256  # bytes; what TensorRT asks of a tensor's address
PAID = 64  # launches that are worth more than a capture, with room to spare


@dataclass(frozen=True)
class Place:
    """Where a tensor lies in its block."""

    offset: int
    shape: Shape
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass
class Context:
    """TensorRT's context and the profile it was given, none yet where it is new."""

    raw: Any
    profile: int | None = None


@dataclass
class Bound:
    """A context bound to shapes and addresses; `views` is its page-locked memory."""

    context: Context
    inputs: Mapping[str, Place]
    outputs: Mapping[str, Place]
    views: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    runs: int = 0
    graph: Graph | None = None


class Contexts:
    """At most `limit` contexts, and the two blocks of memory where all of them find inputs and leave outputs.

    There is never more than one where contexts cannot share a profile.
    """

    def __init__(self, engine: Engine, plan: Plan, device: Device, *, limit: int, graph_after: int) -> None:
        self._engine, self._plan, self._device = engine, plan, device
        self._graph_after = self._patience = graph_after
        self._bound: OrderedDict[Hashable, Bound] = OrderedDict()
        self.inputs, self.outputs = Block(device), Block(device)
        self.limit = limit if engine.shares_profiles else 1
        self._memory = device.allocate(max(1, engine.activation_size)) if self.limit > 1 else 0
        self._spare = [self._new()]

    def bound_to(self, shapes: Mapping[str, Shape], *, kind: Hashable = None) -> Bound:
        """The context for these inputs, another one for each `kind`; `BadRequest` where no profile holds them."""
        key = (kind, *(shapes[tensor.name] for tensor in self._plan.inputs))
        if key not in self._bound:
            self._bound[key] = self._bind(shapes)
        self._bound.move_to_end(key)
        return self._bound[key]

    def output_shapes(self, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """What the engine infers from its inputs' shapes."""
        context = self._take()
        try:
            self._fit(context, shapes)
            return {tensor.name: _shape(context, tensor) for tensor in self._plan.outputs}
        finally:
            self._spare.append(context)

    def wants_graph(self, bound: Bound) -> bool:
        """Whether it ran often enough, since it was bound, to expect that it goes on."""
        return bound.graph is None and 0 < self._patience <= bound.runs

    def give_up_graphs(self) -> None:
        """Capture none from now on."""
        self._graph_after = self._patience = 0

    def close(self) -> None:
        self._unbind_all()
        self._spare.clear()
        self.inputs.close()
        self.outputs.close()
        if self._memory:
            self._device.free(self._memory)
        self._memory = 0

    def _new(self) -> Context:
        if self._memory:
            return Context(self._engine.context_over(self._memory))
        return Context(self._engine.context(), profile=0)  # one alone begins with the first

    def _take(self) -> Context:
        """A context to be told anything: a spare one, a new one, or the one that was used least recently."""
        if not self._spare and len(self._bound) < self.limit:
            try:
                self._spare.append(self._new())
            except StageError:  # memory is short: those there are must do
                self.limit = len(self._bound)
        if not self._spare:
            _, oldest = self._bound.popitem(last=False)
            if oldest.graph:  # if shapes change faster than graphs pay, make fewer
                paid = oldest.runs - self._patience >= PAID
                self._patience = self._graph_after if paid else 2 * self._patience
            self._unbind(oldest)
        return self._spare.pop()

    def _bind(self, shapes: Mapping[str, Shape]) -> Bound:
        context = self._take()
        try:
            self._fit(context, shapes)
            bound = Bound(
                context,
                _places([(tensor, shapes[tensor.name]) for tensor in self._plan.inputs]),
                _places([(tensor, _shape(context, tensor)) for tensor in self._plan.outputs]),
            )
            for block, places in ((self.inputs, bound.inputs), (self.outputs, bound.outputs)):
                self._hold(block, max(1, *(place.offset + place.size for place in places.values())))
            bound.views = self._addressed(bound)
        except Exception:
            self._spare.append(context)
            raise
        return bound

    def _fit(self, context: Context, shapes: Mapping[str, Shape]) -> None:
        """Tell the context the inputs' shapes, in the profile that fits them best."""
        self._set_profile(context, self._plan.profile_for(shapes))
        for name, shape in shapes.items():
            must(context.raw.set_input_shape(name, shape), f"refuses {name} {list(shape)}")

    def _set_profile(self, context: Context, profile: int) -> None:
        if profile != context.profile:
            given = context.raw.set_optimization_profile_async(profile, self._device.stream)
            must(given, f"cannot change to profile {profile}")
            context.profile = profile

    def _hold(self, block: Block, size: int) -> None:
        """Make room; the memory moves where it grows, and with it goes all that was bound to it."""
        if size > block.size:
            self._unbind_all()
            block.hold(size)

    def _addressed(self, bound: Bound) -> dict[str, NDArray[Any]]:
        """Views of all tensors, whose addresses the context now knows."""
        views = {}
        for block, places in ((self.inputs, bound.inputs), (self.outputs, bound.outputs)):
            for name, place in places.items():
                address = block.address + place.offset
                must(bound.context.raw.set_tensor_address(name, address), f"refuses {name}'s address")
                views[name] = block.view(place.offset, place.shape, place.dtype)
        return views

    def _unbind_all(self) -> None:
        while self._bound:
            self._unbind(self._bound.popitem()[1])

    def _unbind(self, bound: Bound) -> None:
        self._spare.append(bound.context)
        if bound.graph:
            bound.graph.close()


def _shape(context: Context, output: Tensor) -> Shape:
    return tuple(context.raw.get_tensor_shape(output.name))


def _places(tensors: Iterable[tuple[Tensor, Shape]]) -> dict[str, Place]:
    """One after the other, as near as their alignment lets them."""
    places, end = {}, 0
    for tensor, shape in tensors:
        place = Place(-(-end // ALIGNMENT) * ALIGNMENT, shape, NUMPY_TYPES[tensor.dtype])
        places[tensor.name], end = place, place.offset + place.size
    return places
