"""For all tests."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
