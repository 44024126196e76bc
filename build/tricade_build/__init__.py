"""From a pipeline file and ONNX models to a repository that Triton serves."""

import tricade  # noqa: F401 - sets the environment before ONNX Runtime is imported
