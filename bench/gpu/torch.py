"""The networks of `weighty` in eager PyTorch on the GPU: `python3 -m bench.gpu.torch`, a line of JSON a measurement.

Runs in an environment that has PyTorch and torchvision, which nothing else here needs. Inputs lie on the GPU already:
what is measured is the network alone, to be held against a plan alone.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
import torchvision

STAGES = ((32, 0), (64, 2), (128, 4), (256, 4), (512, 2))  # as in `weighty.STAGES`
BATCHES = {"classifier": (1, 8, 32, 64), "detector": (1, 4, 16)}
SIDES = {"classifier": 224, "detector": 640}
WARM_UP, SECONDS = 10, 1.5


class Block(torch.nn.Module):
    """A convolution of 3 × 3 with SiLU, and what it adds to."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.nn.functional.silu(self.conv(x))


def detector() -> torch.nn.Module:
    """The convolutions of `weighty.detector`; its last few operators weigh nothing."""
    layers: list[torch.nn.Module] = []
    before = 3
    for channels, blocks in STAGES:
        layers += [torch.nn.Conv2d(before, channels, 3, stride=2, padding=1), torch.nn.SiLU()]
        layers += [Block(channels) for _ in range(blocks)]
        before = channels
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Conv2d(before, 1, 1))


def rows_per_s(network: torch.nn.Module, rows: torch.Tensor) -> float:
    """Back to back, each waited for."""
    with torch.inference_mode():
        for _ in range(WARM_UP):
            network(rows)
        torch.cuda.synchronize()
        began_s, runs = time.perf_counter(), 0
        while time.perf_counter() - began_s < SECONDS:
            network(rows)
            torch.cuda.synchronize()
            runs += 1
        return runs * len(rows) / (time.perf_counter() - began_s)


def main() -> int:
    torch.backends.cudnn.benchmark = True
    networks = {"classifier": torchvision.models.resnet50(weights=None), "detector": detector()}
    for precision, tf32 in (("fp32", False), ("tf32", True), ("fp16", True)):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        dtype = torch.float16 if precision == "fp16" else torch.float32
        for name, network in networks.items():
            network = network.cuda().to(dtype).eval()
            for batch in BATCHES[name]:
                rows = torch.rand(batch, 3, SIDES[name], SIDES[name], device="cuda", dtype=dtype)
                found: dict[str, Any] = {"framework": f"PyTorch {torch.__version__} eager", "precision": precision}
                found |= {"network": name, "batch": batch, "rows_per_s": round(rows_per_s(network, rows), 1)}
                print(json.dumps(found), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
