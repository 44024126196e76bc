"""TensorRT behind a Triton model where Triton has no native backend; the only file that imports `tensorrt`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from typing_extensions import Self

from .cuda import Buffer, Device, open_device
from .errors import EngineMisfit, StageError
from .plan import NUMPY_TYPES, Shape, check_fit, check_outputs, largest_inputs, plan_from_engine
from .stage import Arrays, ModelSpec, Network, Tensor
from .tensorrt_log import log_class

# The lines of TensorRT's log told in an error: a cause and what followed from it.
_NO_TENSORRT = (
    "running a plan needs the Python package tensorrt, which cannot be imported: {}; install it (8.5 or later), "
    "or use a Triton that has the tensorrt backend"
)


class PlanNetwork(Network):
    """An engine with one execution context and one buffer a tensor, on a stream of its own."""

    def __init__(self, spec: ModelSpec, device: Device, file: Path) -> None:
        self._device = device
        self._runtime, self._engine = _engine(device, file)
        self._plan = plan_from_engine(self._engine, file.name)
        check_fit(spec, self._plan)
        self._context = _must(self._engine.create_execution_context(), "cannot make an execution context")
        self._profile = 0  # a context begins with the first
        self._buffers = {tensor.name: Buffer(device) for tensor in (*self._plan.inputs, *self._plan.outputs)}
        self._wanted = tuple(tensor.name for tensor in spec.outputs)
        self._try_profiles(spec)
        self.notes = (f"runs on TensorRT {_tensorrt()[0].__version__} through Python, {device.name}",)

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

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        self._plan.check_inputs(inputs)
        self._device.select()
        self._reshape({name: array.shape for name, array in inputs.items()})
        for name, array in inputs.items():
            self._place(name, array.shape, array.dtype)[...] = array
            self._buffers[name].upload(array.nbytes)
        views = {
            tensor.name: self._place(tensor.name, self._shape(tensor), NUMPY_TYPES[tensor.dtype])
            for tensor in self._plan.outputs
        }
        _must(self._context.execute_async_v3(self._device.stream), "cannot execute")
        for name in self._wanted:
            self._buffers[name].download(views[name].nbytes)
        self._device.synchronize()
        return {name: views[name].copy() for name in self._wanted}

    def close(self) -> None:
        self._context = self._engine = self._runtime = None
        for buffer in self._buffers.values():
            buffer.close()
        self._device.close()

    def _reshape(self, shapes: dict[str, Shape]) -> None:
        """Tell the context the inputs' shapes, in the profile that fits them best; `BadRequest` where none does."""
        profile = self._plan.profile_for(shapes)
        if profile != self._profile:
            _must(
                self._context.set_optimization_profile_async(profile, self._device.stream),
                f"cannot change to profile {profile}",
            )
            self._profile = profile
        for name, shape in shapes.items():
            _must(self._context.set_input_shape(name, shape), f"refuses {name} {list(shape)}")

    def _place(self, name: str, shape: Shape, dtype: Any) -> NDArray[Any]:
        """A tensor's page-locked memory, its buffer grown and known to the context."""
        view = self._buffers[name].view(shape, dtype)
        _must(self._context.set_tensor_address(name, self._buffers[name].address), f"refuses {name}'s address")
        return view

    def _shape(self, output: Tensor) -> Shape:
        return tuple(self._context.get_tensor_shape(output.name))

    def _try_profiles(self, spec: ModelSpec) -> None:
        """Compare the outputs' shapes to the configured, for the largest inputs of every profile."""
        for shapes in largest_inputs(spec, self._plan):
            self._reshape(shapes)
            outputs = {tensor.name: self._shape(tensor) for tensor in self._plan.outputs}
            check_outputs(spec, self._plan, outputs, batch=next(iter(shapes.values()))[0])


def _engine(device: Device, file: Path) -> tuple[Any, Any]:
    """The runtime and the engine it read from the file, to be kept together."""
    trt, log = _tensorrt()
    runtime = trt.Runtime(log)
    engine = runtime.deserialize_cuda_engine(file.read_bytes())
    if engine is None:
        raise EngineMisfit(
            f"{file.name} is no plan for TensorRT {trt.__version__} on {device.name}: {log.told()}; "
            "a plan fits the TensorRT version and the kind of GPU it was built on: run here: tricade build"
        )
    return runtime, engine


@cache
def _tensorrt() -> tuple[Any, Any]:
    """The package and a logger; cached, for TensorRT keeps to the first logger of a process."""
    try:
        trt = import_module("tensorrt")
    except (ImportError, OSError) as error:  # OSError: one of its libraries
        raise EngineMisfit(_NO_TENSORRT.format(error)) from error
    if not hasattr(trt, "Runtime"):
        raise EngineMisfit(_NO_TENSORRT.format(f"found {list(trt.__path__)} in its place"))
    log = log_class(trt)()
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(log, "")
    return trt, log


def _must(value: Any, failure: str) -> Any:
    """A value that TensorRT gives, which is None or False where it failed."""
    if value is None or value is False:
        raise StageError(f"TensorRT {failure}: {_tensorrt()[1].told()}")
    return value
