"""A network as it was given, opened: one input of the size that is served, its answer measured rather than believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tricade.stage import Tensor

from .ends import Answer, Raw
from .errors import FoldError
from .graph import MIN_OPSET, PREFIX, Nodes, add_prefix, keep_live, tail_of
from .runtime import Runtime, newest
from .seams import Seams
from .spec import Normalize

BATCH, WIDTH = "batch", "width"  # symbolic dimensions of the input
NETWORK = "network/"  # before every name of the graph that is folded
MIN_IR = 4  # from here on constants need not be listed as inputs
FLOATS: Mapping[int, type] = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}
BATCH_HINT = "export it again with a dynamic first axis (Ultralytics: dynamic=True)"


@dataclass(frozen=True)
class Front:
    """What goes in: `name` UINT8 [M, h, w, 3]; with `widths`, w is any of them; `single`, M is always 1."""

    name: str  # TENSOR or CROPS
    size: tuple[int, int]  # height, width in pixels
    widths: tuple[int, ...]  # () for a fixed width
    normalize: Normalize
    single: bool = False

    @property
    def tensor(self) -> Tensor:
        height, width = self.size
        return Tensor(self.name, "UINT8", (height, -1 if self.widths else width, 3))

    @property
    def probed(self) -> int:
        """The batch at which the plain graph is measured."""
        return 1 if self.single else 2

    @property
    def batch(self) -> int | str:
        return 1 if self.single else BATCH

    def shapes(self, batch: int) -> list[tuple[int, int, int, int]]:
        """The narrowest and the widest NHWC shape at this batch."""
        height, width = self.size
        ends = sorted({self.widths[0], self.widths[-1]}) if self.widths else [width]
        return [(batch, height, width, 3) for width in ends]


@dataclass(frozen=True)
class Plain:
    """A copy of the source under its own prefix: its input NCHW, and what it answers."""

    model: onnx.ModelProto
    opset: int
    entry: onnx.ValueInfoProto
    answer: Answer
    filled: tuple[onnx.NodeProto, ...]  # nodes that make what its other inputs take, out of the served input


def opened(source: onnx.ModelProto, front: Front, seams: Seams) -> Plain:
    """Check, cut and measure; raises `FoldError`."""
    opset = _opset(source)
    if source.functions:
        source = onnx.inliner.inline_local_functions(source)
    model = onnx.ModelProto()
    model.CopyFrom(source)
    # With a prefix on all of its names the network's own cannot meet those that are added.
    add_prefix(model.graph, NETWORK)
    model.ir_version = max(model.ir_version, MIN_IR)
    node = _cut(model.graph, seams)
    entry, sizes = _settled_inputs(model.graph, front, seams)
    answer = Answer(_measured(model, front, entry, sizes), node)
    filled = [_fill(model.graph, value, front) for value in sizes]
    return Plain(model, opset, entry, answer, tuple(node for nodes in filled for node in nodes))


def title_of(name: str) -> str:
    """A name as the file has it."""
    return name.removeprefix(NETWORK)


def _opset(model: onnx.ModelProto) -> int:
    opset = next((int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    runtime = f"ONNX Runtime {onnxruntime.__version__}"
    if not MIN_OPSET <= opset <= newest().opset:
        raise FoldError(
            f"expected opset {MIN_OPSET} to {newest().opset}, which {runtime} runs, found {opset}; "
            "export the model again, e.g. with opset 17, which TensorRT 8.6 and later take too"
        )
    if model.ir_version > newest().ir:
        raise FoldError(
            f"expected IR version {newest().ir} or older, which {runtime} reads, found {model.ir_version}; "
            "export the model again with an older `onnx` package, or install a newer onnxruntime"
        )
    return opset


def _cut(graph: onnx.GraphProto, seams: Seams) -> onnx.NodeProto | None:
    """Leave out a node at the graph's end; what it takes becomes the outputs."""
    node = next((node for node in graph.node if node.op_type in seams.cuts), None)
    if node is not None:
        del graph.output[:]
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.input if name)
        keep_live(graph)
    return node


def _settled_inputs(
    graph: onnx.GraphProto, front: Front, seams: Seams
) -> tuple[onnx.ValueInfoProto, list[onnx.ValueInfoProto]]:
    """The pictures' input with the dimensions that are served, and those for sizes; inferred shapes are dropped."""
    constants = {constant.name for constant in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    sizes = [value for value in inputs if title_of(value.name) in seams.sizes]
    pictures = [value for value in inputs if value not in sizes]
    if len(pictures) != 1:
        names = ", ".join(title_of(value.name) for value in inputs) or "none"
        raise FoldError(f"expected one input, found {names}; export the model with the picture as its only input")
    entry = pictures[0]
    _check_input(entry, front)
    dims: list[int | str] = [front.batch, 3, front.size[0], WIDTH if front.widths else front.size[1]]
    settled = helper.make_tensor_value_info(entry.name, entry.type.tensor_type.elem_type, dims)
    sizes = [helper.make_tensor_value_info(v.name, v.type.tensor_type.elem_type, [front.batch, 2]) for v in sizes]
    del graph.input[:], graph.value_info[:]
    graph.input.extend([settled, *sizes])
    for output in graph.output:
        if output.HasField("type"):
            output.type.tensor_type.ClearField("shape")
    return settled, sizes


def _check_input(entry: onnx.ValueInfoProto, front: Front) -> None:
    found = [dim.dim_value if dim.dim_value > 0 else None for dim in entry.type.tensor_type.shape.dim]
    what = f"input {title_of(entry.name)} of shape {['?' if side is None else side for side in found]}"
    if entry.type.tensor_type.elem_type not in FLOATS:
        kind = TensorProto.DataType.Name(entry.type.tensor_type.elem_type)
        raise FoldError(f"expected an input of FLOAT or FLOAT16, found {what} and type {kind}")
    if len(found) != 4 or found[1] not in (3, None):
        raise FoldError(f"expected an input [batch, 3, height, width], found {what}")
    if found[0] is not None and not (found[0] == 1 and front.single):
        way = f"{BATCH_HINT}, or set `max_batch` to 1" if found[0] == 1 else BATCH_HINT
        raise FoldError(f"expected a dynamic batch, found {what}; {way}")
    if found[2] not in (front.size[0], None) or found[3] not in (front.size[1], None):
        raise FoldError(f"expected an input that takes `size` {list(front.size)}, found {what}; change `size`")
    if front.widths and found[3] is not None:
        raise FoldError(f"expected a dynamic width, as there are `widths`, found {what}; remove `widths`")


def _measured(
    model: onnx.ModelProto, front: Front, entry: onnx.ValueInfoProto, sizes: list[onnx.ValueInfoProto]
) -> tuple[Raw, ...]:
    """Run the plain graph on zeros to see what comes out."""
    batch, height, width, _ = front.shapes(front.probed)[0]
    dtype = FLOATS[entry.type.tensor_type.elem_type]
    given: dict[str, NDArray[np.generic]] = {entry.name: np.zeros((batch, 3, height, width), dtype)}
    given |= {value.name: _size(value, front, batch=batch) for value in sizes}
    found = Runtime(model).run(given)
    return tuple(
        Raw(
            name=name,
            title=title_of(name),
            shape=value.shape,
            dtype=helper.np_dtype_to_tensor_dtype(value.dtype),
            tail=tail_of(model.graph, name),
            batch=batch,
        )
        for name, value in found.items()
    )


def _size(value: onnx.ValueInfoProto, front: Front, *, batch: int) -> NDArray[np.generic]:
    """Width, height of the network's input for each picture."""
    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    return np.array([[front.size[1], front.size[0]]] * batch, dtype)


def _fill(graph: onnx.GraphProto, value: onnx.ValueInfoProto, front: Front) -> list[onnx.NodeProto]:
    """Make what an input for sizes takes out of a constant, as many rows as there are pictures."""
    graph.input.remove(value)
    nodes = Nodes(MIN_OPSET, prefix=f"{PREFIX}{title_of(value.name)}/")
    rows = nodes.add("Concat", nodes.batch_of(front.name), nodes.integers(2), axis=0)
    nodes.add("Expand", nodes.constant(_size(value, front, batch=1)), rows, out=value.name)
    graph.initializer.extend(nodes.constants)
    return nodes.nodes
