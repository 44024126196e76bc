"""Stands in for TensorRT, of the version `$FAKE_TENSORRT`, in processes of their own."""

import os

from fake_tensorrt import in_process

globals().update(in_process(os.environ.get("FAKE_TENSORRT", "10.13.0")))
