"""`fold`: an ONNX file to the network that is served, with everything around it inside the graph.

In front: UINT8 NHWC RGB → transposed, in the network's order of colours, cast, (x - mean) / std.
Behind: what the family or the head adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.compose
from onnx import TensorProto, helper

from tricade.stage import Tensor

from .ends import End, Raw
from .errors import FoldError
from .graph import MIN_OPSET, Nodes, tail_of
from .prove import prove
from .runtime import Runtime
from .shapes import Shapes
from .spec import Normalize

BATCH, WIDTH, STEPS = "batch", "width", "steps"  # the symbolic dimensions of a folded graph
NETWORK = "network/"  # before every name of the graph that is folded
MIN_IR = 4  # from here on constants need not be listed as inputs
PROBED = 2  # the batch at which the plain graph is measured
FLOATS: Mapping[int, type] = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}
ONNX_TYPES = {"UINT8": TensorProto.UINT8, "INT32": TensorProto.INT32, "FP32": TensorProto.FLOAT}


@dataclass(frozen=True)
class Front:
    """What goes in: `name` UINT8 [M, h, w, 3]; with `widths`, w is any of them."""

    name: str  # TENSOR or CROPS
    size: tuple[int, int]  # height, width in pixels
    widths: tuple[int, ...]  # () for a fixed width
    normalize: Normalize

    @property
    def tensor(self) -> Tensor:
        height, width = self.size
        return Tensor(self.name, "UINT8", (height, -1 if self.widths else width, 3))

    def shapes(self, batch: int) -> list[tuple[int, int, int, int]]:
        """The narrowest and the widest NHWC shape at this batch."""
        height, width = self.size
        ends = sorted({self.widths[0], self.widths[-1]}) if self.widths else [width]
        return [(batch, height, width, 3) for width in ends]


@dataclass(frozen=True)
class Folded:
    """A graph that is ready to be served."""

    model: onnx.ModelProto
    shapes: Shapes


def fold(source: onnx.ModelProto, front: Front, end: End) -> Folded:
    """Fold both ends into a copy of `source`, then prove it; raises `FoldError`."""
    opset = _opset(source)
    # With a prefix on all of its names the network's own cannot meet those that are added.
    model = onnx.compose.add_prefix(source, NETWORK)
    entry = _settled_input(model, front)
    raw = _measured(model, front, entry)
    nodes = Nodes(opset)
    _add_front(nodes, front, entry)
    network = list(model.graph.node)
    before = len(nodes.nodes)
    ended = end(nodes, raw)
    graph = model.graph
    del graph.node[:]
    graph.node.extend([*nodes.nodes[:before], *network, *nodes.nodes[before:]])
    graph.initializer.extend(nodes.constants)
    shapes = Shapes(front.tensor, ended.outputs, ended.classes)
    _declare(graph, shapes)
    prove(model, shapes, [*front.shapes(1), front.shapes(2)[0]])
    return Folded(model, shapes)


def _opset(model: onnx.ModelProto) -> int:
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if opset < MIN_OPSET:
        raise FoldError(
            f"expected opset {MIN_OPSET} or newer, found {opset}; export the model again, e.g. with opset 17"
        )
    return int(opset)


def _settled_input(model: onnx.ModelProto, front: Front) -> onnx.ValueInfoProto:
    """The one input, its dimensions fixed to what is served; shapes that were inferred before are dropped."""
    graph = model.graph
    constants = {constant.name for constant in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        names = [[value.name.removeprefix(NETWORK) for value in values] for values in (inputs, graph.output)]
        raise FoldError(f"expected one input and one output, found inputs {names[0]} and outputs {names[1]}")
    entry = inputs[0]
    _check_input(entry, front)
    dims: list[int | str] = [BATCH, 3, front.size[0], WIDTH if front.widths else front.size[1]]
    settled = helper.make_tensor_value_info(entry.name, entry.type.tensor_type.elem_type, dims)
    del graph.input[:], graph.value_info[:]
    graph.input.append(settled)
    graph.output[0].type.tensor_type.ClearField("shape")
    model.ir_version = max(model.ir_version, MIN_IR)
    return settled


def _check_input(entry: onnx.ValueInfoProto, front: Front) -> None:
    found = [dim.dim_value if dim.dim_value > 0 else None for dim in entry.type.tensor_type.shape.dim]
    what = f"input {entry.name.removeprefix(NETWORK)} of shape {['?' if side is None else side for side in found]}"
    if entry.type.tensor_type.elem_type not in FLOATS:
        kind = TensorProto.DataType.Name(entry.type.tensor_type.elem_type)
        raise FoldError(f"expected an input of FLOAT or FLOAT16, found {what} and type {kind}")
    if len(found) != 4 or found[1] not in (3, None):
        raise FoldError(f"expected an input [batch, 3, height, width], found {what}")
    if found[0] is not None:
        raise FoldError(f"expected a dynamic batch, found {what}; export it again with a dynamic first axis")
    if found[2] not in (front.size[0], None) or found[3] not in (front.size[1], None):
        raise FoldError(f"expected an input that takes `size` {list(front.size)}, found {what}; change `size`")
    if front.widths and found[3] is not None:
        raise FoldError(f"expected a dynamic width, as there are `widths`, found {what}; remove `widths`")


def _measured(model: onnx.ModelProto, front: Front, entry: onnx.ValueInfoProto) -> Raw:
    """Run the plain graph on zeros to see what comes out."""
    batch, height, width, _ = front.shapes(PROBED)[0]
    dtype = FLOATS[entry.type.tensor_type.elem_type]
    output = model.graph.output[0]
    value = Runtime(model).run(np.zeros((batch, 3, height, width), dtype))[output.name]
    if value.dtype not in FLOATS.values() or value.shape[:1] != (batch,):
        raise FoldError(
            f"expected an output of FLOAT or FLOAT16 for each image, found {value.dtype} {list(value.shape)} for a "
            f"batch of {batch}; export it again with a dynamic batch"
        )
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return Raw(output.name, value.shape, kind, tail_of(model.graph, output.name))


def _add_front(nodes: Nodes, front: Front, entry: onnx.ValueInfoProto) -> None:
    """Bytes to floats first, since TensorRT knows UINT8 at the borders of a graph only; then to NCHW.

    On ONNX Runtime this order is as fast as transposing bytes, normalizing before it four times slower.
    """
    kind = entry.type.tensor_type.elem_type
    pixels = nodes.cast(front.name, TensorProto.FLOAT)
    pixels = nodes.add("Transpose", pixels, perm=[0, 3, 1, 2])
    if front.normalize.colour == "bgr":
        pixels = nodes.add("Gather", pixels, nodes.integers(2, 1, 0), axis=1)
    for op, values, neutral in (("Sub", front.normalize.mean, 0.0), ("Div", front.normalize.std, 1.0)):
        if any(value != neutral for value in values):
            pixels = nodes.add(op, pixels, nodes.constant(np.array(values, np.float32).reshape(1, 3, 1, 1)))
    nodes.cast(pixels, kind, out=entry.name)


def _declare(graph: onnx.GraphProto, shapes: Shapes) -> None:
    """Inputs and outputs as they are served: the batch has one name, every other open dimension its own."""
    del graph.input[:], graph.output[:]
    graph.input.append(_value_info(shapes.input))
    graph.output.extend(_value_info(tensor) for tensor in shapes.outputs)


def _value_info(tensor: Tensor) -> onnx.ValueInfoProto:
    # The one open side of an input is its width, that of an output the steps which follow from it.
    name = WIDTH if tensor.dtype == "UINT8" else STEPS
    dims: list[int | str] = [BATCH, *(name if side == -1 else side for side in tensor.dims)]
    return helper.make_tensor_value_info(tensor.name, ONNX_TYPES[tensor.dtype], dims)
