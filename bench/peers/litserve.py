"""LitServe: `decode_request` and `encode_response` around `predict`, a worker process a core."""

from __future__ import annotations

from typing import Any

import litserve

from tricade.stage import Arrays

from .pipeline import Pipeline, Place, plain


class Detect(litserve.LitAPI):
    """One picture a request; nothing is batched, as pictures differ in size."""

    def setup(self, device: str) -> None:  # noqa: ARG002
        self.pipeline = Pipeline(Place.from_environment())

    def decode_request(self, request):  # type: ignore[no-untyped-def] # an annotation would be FastAPI's
        return request["picture"].file.read()

    def predict(self, picture: bytes) -> Arrays:
        return self.pipeline.outputs(picture)

    def encode_response(self, outputs: Arrays) -> dict[str, Any]:
        return plain(outputs)


if __name__ == "__main__":
    place = Place.from_environment()
    server = litserve.LitServer(
        Detect(), accelerator="cpu", workers_per_device=place.workers, timeout=120, fast_queue=True
    )
    server.run(host="127.0.0.1", port=place.port, generate_client_file=False, log_level="warning")
