"""Stands in for TensorRT for RTX in processes of their own."""

from fake_tensorrt import RTX, in_process

globals().update(in_process(RTX))
