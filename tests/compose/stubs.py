"""A TensorRT that is nothing but its version: libraries that its Python bindings can be loaded with."""

from __future__ import annotations

import subprocess
from pathlib import Path

# Of the libraries' own headers: what the bindings take from each.
LIBRARIES = {
    "nvinfer": ("createInferBuilder_INTERNAL", "createInferRefitter_INTERNAL", "createInferRuntime_INTERNAL",
                "getPluginRegistry", "getBuilderPluginRegistry"),
    "nvinfer_plugin": ("initLibNvInferPlugins",),
    "nvonnxparser": ("createNvOnnxParser_INTERNAL", "createNvOnnxParserRefitter_INTERNAL", "getNvOnnxParserVersion"),
}  # fmt: skip


def write_libraries(folder: Path, *, major: int, number: int) -> None:
    """`number` is what `getInferLibVersion` answers; needs a C compiler."""
    for library, functions in LIBRARIES.items():
        lines = [f"void *{name}(void) {{ return 0; }}" for name in functions]
        if library == "nvinfer":
            lines.append(f"int getInferLibVersion(void) {{ return {number}; }}")
        name = f"lib{library}.so.{major}"
        command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-x", "c", "-", "-o", str(folder / name)]
        subprocess.run(command, input="\n".join(lines), text=True, check=True)
