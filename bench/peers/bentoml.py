"""BentoML; run: `bentoml serve bench.peers.bentoml:Detect`. The picture is the whole body, as its root input takes it.

A worker a core, as its documentation says for services that compute on processors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bentoml

from .pipeline import Pipeline, Place, plain

place = Place.from_environment()


@bentoml.service(workers=place.workers, traffic={"timeout": 120}, logging={"access": {"enabled": False}})
class Detect:
    def __init__(self) -> None:
        self.pipeline = Pipeline(place)

    @bentoml.api
    def detect(self, picture: Path, /) -> dict[str, Any]:
        return plain(self.pipeline.outputs(picture.read_bytes()))
