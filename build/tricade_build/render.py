"""`render`: a pipeline's wiring to the files of its repository, through Triton's own ModelConfig."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as triton

from tricade.stage import Tensor

from .errors import BuildError
from .wiring import OPTIONAL, Step, Wiring

Files = dict[PurePosixPath, bytes]  # by their path in the repository
VERSION = "1"  # of stages and ensembles; networks get theirs from `placement`
# Of a network, a GPU. Two plans overlap one's copies with the other's execution (docs/performance.md: a third more
# throughput, a third plan adds nothing); ONNX Runtime has all cores in one.
PLAN_INSTANCES, ONNX_INSTANCES = 2, 1


def render(wiring: Wiring, *, origin: str, names: Mapping[str, tuple[str, ...]]) -> Files:
    """Every configuration and label file; `origin` is the pipeline file as the configurations name it."""
    _check_names(wiring)
    files: Files = {PurePosixPath(wiring.name, "config.pbtxt"): _text(_ensemble(wiring), wiring.name, origin)}
    for step in wiring.steps:
        folder = PurePosixPath(step.model)
        if step.backend:
            files[folder / "config.pbtxt"] = _text(_stage(step), wiring.name, origin)
        else:
            plan, onnx = _network(step, PLAN_INSTANCES), _network(step, ONNX_INSTANCES)
            plan.platform, plan.default_model_filename = "tensorrt_plan", "model.plan"
            onnx.backend, onnx.default_model_filename = "onnxruntime", "model.onnx"
            files[folder / "config.pbtxt"] = _text(plan, wiring.name, origin)
            files[folder / "configs" / "onnxruntime.pbtxt"] = _text(onnx, wiring.name, origin)
    for network, labels in names.items():
        path = PurePosixPath(f"{wiring.name}_label", f"{network}.txt")
        files[path] = "".join(f"{label}\n" for label in labels).encode()
    for model in [wiring.name, *(step.model for step in wiring.steps if step.backend)]:
        files[PurePosixPath(model, VERSION, ".gitkeep")] = b""
    return files


def comment(pipeline: str, origin: str) -> str:
    """The first line of a configuration: by it `placement` knows whose model it is."""
    return f"# Pipeline {pipeline}: written by `tricade build {origin}`; change that file and build again.\n"


def _text(config: triton.ModelConfig, pipeline: str, origin: str) -> bytes:
    text = text_format.MessageToString(config, use_short_repeated_primitives=True)
    return (comment(pipeline, origin) + text).encode()


def _check_names(wiring: Wiring) -> None:
    """No two tensors of the ensemble may share a name."""
    made = [tensor.name for tensor in wiring.inputs]
    made += [step.edge(tensor.name) for step in wiring.steps for tensor in step.outputs]
    if twice := sorted({name for name in made if made.count(name) > 1}):
        raise BuildError(f"expected a name of its own for each tensor; two are called {twice[0]}; rename a classifier")


def _ensemble(wiring: Wiring) -> triton.ModelConfig:
    config = triton.ModelConfig(name=wiring.name, platform="ensemble")
    config.input.extend(_input(tensor) for tensor in wiring.inputs)
    config.output.extend(_output(tensor) for tensor in wiring.outputs)
    for step in wiring.steps:
        config.ensemble_scheduling.step.add(
            model_name=step.model,
            model_version=-1,
            input_map={tensor.name: step.source(tensor.name) for tensor in step.inputs},
            output_map={tensor.name: step.edge(tensor.name) for tensor in step.outputs},
        )
    return config


def _stage(step: Step) -> triton.ModelConfig:
    config = triton.ModelConfig(name=step.model, backend=step.backend)
    _tensors(config, step)
    config.instance_group.add(count=step.instances, kind=triton.ModelInstanceGroup.KIND_CPU)
    for name, value in step.parameters.items():
        config.parameters[name].string_value = value
    return config


def _network(step: Step, instances: int) -> triton.ModelConfig:
    config = triton.ModelConfig(name=step.model, max_batch_size=step.max_batch)
    _tensors(config, step)
    config.dynamic_batching.max_queue_delay_microseconds = step.max_delay_us
    config.instance_group.add(count=step.instances or instances, kind=triton.ModelInstanceGroup.KIND_AUTO)
    return config


def _tensors(config: triton.ModelConfig, step: Step) -> None:
    config.input.extend(_input(tensor) for tensor in step.inputs)
    config.output.extend(_output(tensor) for tensor in step.outputs)


def _input(tensor: Tensor) -> triton.ModelInput:
    return triton.ModelInput(
        name=tensor.name,
        data_type=triton.DataType.Value(f"TYPE_{tensor.dtype}"),
        dims=tensor.dims,
        optional=tensor.name in OPTIONAL,
    )


def _output(tensor: Tensor) -> triton.ModelOutput:
    return triton.ModelOutput(
        name=tensor.name, data_type=triton.DataType.Value(f"TYPE_{tensor.dtype}"), dims=tensor.dims
    )
