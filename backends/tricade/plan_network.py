"""TensorRT behind a Triton model where Triton has no native backend."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from .contexts import Bound, Contexts, Place
from .cuda import Device, open_device
from .dlpack import DeviceArray
from .engine import Engine, must
from .errors import EngineMisfit, StageError
from .plan import NUMPY_TYPES, check_fit, check_outputs, inputs_to_expect, largest_inputs, plan_from_engine
from .rows import shapes_of, slices_of, split
from .settings import groups_of, settings_from_parameters
from .stage import Arrays, ModelSpec, Network

WARM_UP_S = 10.0  # at most, which no plan measured here came near


@dataclass(frozen=True)
class PlanSettings:
    """A model's parameters `plan.…`; all others are the native backend's business."""

    contexts: int = 32  # under a MiB of GPU memory each, its graph included
    graph_after: int = 3  # executions of one shape; 0 for no CUDA graphs
    gpu_outputs: bool = False

    def __post_init__(self) -> None:
        if self.contexts < 1 or self.graph_after < 0:
            raise ValueError(f"contexts should be 1 or more, graph_after 0 or more, are {self}")


class PlanNetwork(Network):
    """An engine whose batches go to the GPU and back through page-locked memory, by a CUDA graph where shapes recur."""

    def __init__(self, spec: ModelSpec, device: Device, file: Path) -> None:
        self._spec, self._settings = spec, _settings(spec)
        self._device = device
        engine = Engine(device, file)
        self._plan = plan_from_engine(engine.raw, file.name)
        check_fit(spec, self._plan)
        self._wanted = tuple(tensor.name for tensor in spec.outputs)
        limit, graph_after = self._settings.contexts, self._settings.graph_after
        self._contexts = Contexts(engine, self._plan, device, limit=limit, graph_after=graph_after)
        for shapes in largest_inputs(spec, self._plan):
            outputs = self._contexts.output_shapes(shapes)
            check_outputs(spec, self._plan, outputs, batch=next(iter(shapes.values()))[0])
        self.notes = (f"runs on TensorRT {engine.version} through Python, {device.name}",)
        if self._contexts.limit < limit:
            self.notes += (
                "has one execution context, thus one CUDA graph at a time: the plan was not built with "
                "PROFILE_SHARING_0806; run: tricade build",
            )

    @classmethod
    def load(cls, spec: ModelSpec) -> Self:
        file = spec.directory / str(spec.version) / (spec.model_file or "model.plan")
        if not file.is_file():
            raise EngineMisfit(f"{spec.name}: there is no {file.name} in version {spec.version}; run: tricade build")
        if spec.device_id is None:
            raise EngineMisfit(
                f"{spec.name}: a plan needs an instance_group of KIND_GPU, this one is on a processor: "
                "correct config.pbtxt, or see that this machine's GPU is visible to Triton"
            )
        try:
            # Before TensorRT, which takes the process down where there is no GPU (8.6).
            device = open_device(spec.device_id)
            try:
                return cls(spec, device, file)
            except Exception:
                device.close()
                raise
        except (EngineMisfit, StageError) as error:  # StageError: memory, most often
            raise EngineMisfit(f"{spec.name}: {error}") from error

    def warm_up(self) -> None:
        """Execute the shapes to expect, as many as there are contexts: the first execution of each takes 15 to 45 ms of
        a network of weight (docs/performance.md), and where memory moves all graphs are lost."""
        end = time.monotonic() + WARM_UP_S
        types = {tensor.name: NUMPY_TYPES[tensor.dtype] for tensor in self._plan.inputs}
        for shapes in inputs_to_expect(self._spec, self._plan, most=self._contexts.limit):
            try:
                self.run({name: np.zeros(shape, types[name]) for name, shape in shapes.items()})
            except StageError as error:
                raise EngineMisfit(f"{self._spec.name}: {error}") from error
            if time.monotonic() > end:
                break

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        return self.run_all([inputs])[0]

    def run_all(self, requests: Sequence[Arrays]) -> list[dict[str, NDArray[Any]]]:
        on_gpu = any(isinstance(array, DeviceArray) for inputs in requests for array in inputs.values())
        # On the host the one with the fewest rows stands for all: `_fill` refuses other types by itself.
        for inputs in requests if on_gpu else [min(requests, key=_rows)]:
            self._plan.check_inputs(inputs)
        self._device.select()
        bound = self._contexts.bound_to(shapes_of(requests), kind=on_gpu)
        if on_gpu:
            self._upload_rows(bound, requests)
        else:
            self._fill(bound, requests)
        self._execute(bound, uploaded=on_gpu)
        outputs = self._outputs(bound)
        return split(outputs, slices_of(requests)) if len(requests) > 1 else [outputs]

    def close(self) -> None:
        self._contexts.close()
        self._device.close()

    def _fill(self, bound: Bound, requests: Sequence[Arrays]) -> None:
        """Write all rows straight into page-locked memory."""
        for name in bound.inputs:
            np.concatenate([inputs[name] for inputs in requests], out=bound.views[name], casting="no")

    def _upload_rows(self, bound: Bound, requests: Sequence[Arrays]) -> None:
        """Put a copy of each request's rows on the stream, from wherever they lie."""
        block = self._contexts.inputs
        for name, place in bound.inputs.items():
            offset = place.offset
            for inputs in requests:
                array: Any = inputs[name]
                if isinstance(array, DeviceArray):
                    to, size = block.address + offset, array.nbytes
                    self._device.copy(to=to, source=array.address, size=size, direction="DeviceToDevice")
                else:
                    block.view(offset, array.shape, array.dtype)[...] = array
                    block.upload(offset, array.nbytes)
                offset += array.nbytes

    def _execute(self, bound: Bound, *, uploaded: bool) -> None:
        if bound.graph:
            bound.graph.launch()
        else:
            self._enqueue(bound, uploaded=uploaded)
        bound.runs += 1
        if self._contexts.wants_graph(bound):
            try:
                bound.graph = self._device.capture(lambda: self._enqueue(bound, uploaded=uploaded))
            except StageError as error:
                self._contexts.give_up_graphs()
                self.warnings += (f"goes on without CUDA graphs, one could not be captured: {error}",)

    def _enqueue(self, bound: Bound, *, uploaded: bool) -> None:
        """Put an execution and the copies around it on the stream."""
        if not uploaded:
            for place in bound.inputs.values():
                self._contexts.inputs.upload(place.offset, place.size)
        must(bound.context.raw.execute_async_v3(self._device.stream), "cannot execute")
        if not self._settings.gpu_outputs:
            for name in self._wanted:
                place = bound.outputs[name]
                self._contexts.outputs.download(place.offset, place.size)

    def _outputs(self, bound: Bound) -> dict[str, Any]:
        """All that is asked for, awaited; memory of its own, here or on the GPU."""
        if self._settings.gpu_outputs:
            lent = {name: self._lent(bound.outputs[name]) for name in self._wanted}
            self._device.synchronize()
            return lent
        self._device.synchronize()
        return {name: bound.views[name].copy() for name in self._wanted}

    def _lent(self, output: Place) -> DeviceArray:
        """Memory on the GPU, and a copy of an output into it put on the stream."""
        lent = self._device.lend(max(1, output.size))
        source = self._contexts.outputs.address + output.offset
        self._device.copy(to=lent.address, source=source, size=output.size, direction="DeviceToDevice")
        return DeviceArray(lent.address, output.shape, output.dtype, self._device.index, lent)


def _rows(inputs: Arrays) -> int:
    return min(map(len, inputs.values()), default=0)


def _settings(spec: ModelSpec) -> PlanSettings:
    _, groups = groups_of(spec.parameters)
    settings = settings_from_parameters(PlanSettings, groups.get("plan", {}), where=f"{spec.name}: plan")
    if settings.gpu_outputs:
        try:
            ctypes.CDLL("libcuda.so")
        except OSError as error:
            raise EngineMisfit(
                f"{spec.name}: plan.gpu_outputs needs libcuda.so, which Triton's Python stub opens by that very "
                f"name and dies without: {error}; link it to libcuda.so.1, or leave the outputs on the host"
            ) from error
    return settings
