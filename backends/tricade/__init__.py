"""The stages of a cascade as pure functions of arrays, and the one file that knows Triton's stub."""

import os

# ONNX Runtime's Linux wheels report home from 1.32 on, unless this is set before they are imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
