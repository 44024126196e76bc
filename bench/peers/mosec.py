"""mosec: three stages in processes of their own; what passes between them is pickled, as it does by default.

The first and the last work on one picture at a time, in a process a core; the detector batches across requests.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from mosec import Server, Worker
from numpy.typing import NDArray

from .pipeline import Pipeline, Place, image_from, plain

TIMEOUT_S = 120
place = Place.from_environment()


class Preprocess(Worker):
    """Decodes and letterboxes."""

    def __init__(self) -> None:
        self.pipeline = Pipeline(place)
        step = self.pipeline.ensemble.ensemble_scheduling.step[0]
        self.tensors = list(step.output_map.values())

    def deserialize(self, data: bytes) -> bytes:
        return bytes(data)  # a bytearray comes

    def forward(self, data: bytes) -> dict[str, NDArray[Any]]:
        return self.pipeline.tensors(image_from(data), self.tensors)


class Detect(Worker):
    """Runs the detector on several pictures at once."""

    def __init__(self) -> None:
        self.network = Pipeline(place).networks[f"{place.pipeline}_detector"]

    def forward(self, data: list[dict[str, NDArray[Any]]]) -> list[dict[str, NDArray[Any]]]:
        found = self.network({"TENSOR": np.concatenate([tensors["TENSOR"] for tensors in data])})
        return [
            {name: array for name, array in tensors.items() if name != "TENSOR"}
            | {name: array[row : row + 1] for name, array in found.items()}
            for row, tensors in enumerate(data)
        ]


class Classify(Worker):
    """Crops, classifies and names."""

    def __init__(self) -> None:
        self.pipeline = Pipeline(place)

    def forward(self, data: dict[str, NDArray[Any]]) -> dict[str, Any]:
        return plain(self.pipeline.after(data))

    def serialize(self, data: dict[str, Any]) -> bytes:
        return json.dumps(data).encode()  # its own indents


if __name__ == "__main__":
    server = Server()
    server.append_worker(Preprocess, num=place.workers, timeout=TIMEOUT_S)
    server.append_worker(Detect, max_batch_size=4, max_wait_time=1, timeout=TIMEOUT_S)
    server.append_worker(Classify, num=place.workers, timeout=TIMEOUT_S)
    server.run()
