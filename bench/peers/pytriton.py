"""pytriton: everything in one Python model behind a Triton of its own, which answers as tricade's does.

Several instances of the function run in this process's threads; requests are not batched, as pictures differ in size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

from tricade.stage import Arrays
from tricade_tune.host import free_ports

from .pipeline import Pipeline, Place

HOST = "127.0.0.1"


def main() -> None:
    place = Place.from_environment()
    pipeline = Pipeline(place)

    def infer(requests: list[Any]) -> list[dict[str, NDArray[Any]]]:
        return [_sendable(pipeline({"IMAGE": request.data["IMAGE"]})) for request in requests]

    (http_port,) = free_ports(1)
    config = TritonConfig(
        http_address=HOST, http_port=http_port, grpc_address=HOST, grpc_port=place.port, allow_metrics=False
    )
    with Triton(config=config) as triton:
        triton.bind(
            model_name=place.pipeline,
            infer_func=[infer] * place.workers,
            inputs=[Tensor(name="IMAGE", dtype=np.bytes_, shape=(-1,))],
            outputs=[_tensor(output) for output in pipeline.ensemble.output],
            config=ModelConfig(batching=False),
        )
        triton.serve()


def _sendable(outputs: Arrays) -> dict[str, NDArray[Any]]:
    """A blank row where there is none, as pytriton sends no empty array; COUNT tells."""
    return {name: array if array.size else _blank(array) for name, array in outputs.items()}


def _blank(array: NDArray[Any]) -> NDArray[Any]:
    return np.full((1, *array.shape[1:]), b"" if array.dtype == np.object_ else 0, array.dtype)


def _tensor(output: Any) -> Tensor:
    """What the ensemble's configuration says of an output."""
    kinds = {"TYPE_INT32": np.int32, "TYPE_FP32": np.float32, "TYPE_STRING": np.bytes_}
    kind = output.DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number[output.data_type].name
    return Tensor(name=output.name, dtype=kinds[kind], shape=tuple(output.dims))


if __name__ == "__main__":
    main()
