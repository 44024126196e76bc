"""FastAPI behind uvicorn, ONNX Runtime in the handler; run: `uvicorn bench.peers.fastapi:app --workers N`.

A plain `def` runs in FastAPI's thread pool, so that the event loop stays free while networks run; a `Response` of its
own skips validation. Processes are as many as uvicorn's documentation says, one a core.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, FastAPI
from fastapi.responses import JSONResponse

from .pipeline import Pipeline, Place, plain

app = FastAPI()
pipeline = Pipeline(Place.from_environment())


@app.get("/ready")
def ready() -> bool:
    return True


@app.post("/detect")
def detect(picture: Annotated[bytes, Body(media_type="application/octet-stream")]) -> JSONResponse:
    return JSONResponse(plain(pipeline.outputs(picture)))
