"""Triton's own client, for what the SDK would not let through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tritonclient import grpc as triton


class PlainTriton:
    """Requests as anybody could send them."""

    def __init__(self, url: str) -> None:
        self.client: Any = triton.InferenceServerClient(url)

    def __enter__(self) -> PlainTriton:
        return self

    def __exit__(self, *exception: object) -> None:
        self.client.close()

    def ask(
        self, model: str, images: Sequence[bytes], *, outputs: Sequence[str] | None = None, **options: Any
    ) -> dict[str, np.ndarray]:
        """Send encoded images; all outputs by name, or those asked for."""
        data = np.empty(len(images), np.object_)
        data[:] = list(images)
        return self.send(model, {"IMAGE": data}, outputs=outputs, **options)

    def send(
        self, model: str, inputs: dict[str, np.ndarray], *, outputs: Sequence[str] | None = None, **options: Any
    ) -> dict[str, np.ndarray]:
        """Send arrays as they are."""
        sent = []
        for name, array in inputs.items():
            kind = "BYTES" if array.dtype == np.object_ else triton_type(array.dtype)
            tensor = triton.InferInput(name, list(array.shape), kind)
            tensor.set_data_from_numpy(array)
            sent.append(tensor)
        wanted = None if outputs is None else [triton.InferRequestedOutput(name) for name in outputs]
        answer = self.client.infer(model, sent, outputs=wanted, **options)
        return {output.name: answer.as_numpy(output.name) for output in answer.get_response().outputs}


def triton_type(dtype: np.dtype) -> str:
    return {"float32": "FP32", "uint8": "UINT8", "int32": "INT32", "int64": "INT64"}[dtype.name]
