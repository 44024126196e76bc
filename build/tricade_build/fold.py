"""`fold`: an ONNX file to the network that is served, with everything around it inside the graph.

In front: UINT8 NHWC RGB → transposed, in the network's order of colours, cast, (x - mean) / std.
Behind: what the family or the head adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from tricade.stage import Tensor

from .ends import End
from .graph import PREFIX, Nodes, keep_live
from .plain import BATCH, NETWORK, WIDTH, Front, Plain, opened
from .prove import prove
from .seams import NO_SEAMS, Seams
from .shapes import Shapes

FRONT = f"{PREFIX}front/"  # before the names of the nodes in front
STEPS = "steps"  # the symbolic dimension of an output that follows from the width
ONNX_TYPES = {"UINT8": TensorProto.UINT8, "INT32": TensorProto.INT32, "FP32": TensorProto.FLOAT}

__all__ = ["Folded", "Front", "fold"]


@dataclass(frozen=True)
class Folded:
    """A graph that is ready to be served; `raw` are the tensors in it that the network itself answered with."""

    model: onnx.ModelProto
    shapes: Shapes
    raw: tuple[str, ...] = ()


def fold(source: onnx.ModelProto, front: Front, end: End, *, seams: Seams = NO_SEAMS) -> Folded:
    """Fold both ends into a copy of `source`, then prove it; raises `FoldError`."""
    plain = opened(source, front, seams)
    before, behind = Nodes(plain.opset, prefix=FRONT), Nodes(plain.opset)
    _add_front(before, front, plain)
    ended = end(behind, plain.answer)
    if front.single:
        _free_batch(behind, front, ended.outputs)
    graph = plain.model.graph
    network = list(graph.node)
    del graph.node[:]
    graph.node.extend([*before.nodes, *plain.filled, *network, *behind.nodes])
    graph.initializer.extend([*before.constants, *behind.constants])
    shapes = Shapes(front.tensor, ended.outputs, ended.classes)
    _declare(graph, shapes)
    keep_live(graph)
    prove(plain.model, shapes, [*front.shapes(1), *front.shapes(front.probed)[:1]])
    return Folded(plain.model, shapes, raw_of(graph))


def raw_of(graph: onnx.GraphProto) -> tuple[str, ...]:
    """The tensors that the network itself answers with: what the nodes behind it read of it."""
    behind = (node for node in graph.node if node.name.startswith(PREFIX) and not node.name.startswith(FRONT))
    read = dict.fromkeys(name for node in behind for name in node.input if name.startswith(NETWORK))
    return tuple(read)


def _add_front(nodes: Nodes, front: Front, plain: Plain) -> None:
    """Bytes to floats first, since TensorRT knows UINT8 at the borders of a graph only; then to NCHW.

    On ONNX Runtime this order is as fast as transposing bytes, normalizing before it four times slower.
    """
    pixels = nodes.cast(front.name, TensorProto.FLOAT)
    pixels = nodes.add("Transpose", pixels, perm=[0, 3, 1, 2])
    if front.normalize.colour == "bgr":
        pixels = nodes.add("Gather", pixels, nodes.integers(2, 1, 0), axis=1)
    for op, values, neutral in (("Sub", front.normalize.mean, 0.0), ("Div", front.normalize.std, 1.0)):
        if any(value != neutral for value in values):
            pixels = nodes.add(op, pixels, nodes.constant(np.array(values, np.float32).reshape(1, 3, 1, 1)))
    if front.single:
        pixels = nodes.add("Reshape", pixels, nodes.integers(1, 3, front.size[0], -1))
    nodes.cast(pixels, plain.entry.type.tensor_type.elem_type, out=plain.entry.name)


def _free_batch(nodes: Nodes, front: Front, outputs: tuple[Tensor, ...]) -> None:
    """A network whose batch is fixed to 1 gives tensors of any batch at its border: Triton asks for that."""
    batch = nodes.batch_of(front.name)
    makers = {out: (node, index) for node in nodes.nodes for index, out in enumerate(node.output)}
    for tensor in outputs:
        node, index = makers[tensor.name]
        shape = nodes.add("Concat", batch, nodes.integers(*tensor.dims), axis=0)
        if node.op_type == "Cast":
            # A cast stays the last: TensorRT knows UINT8 at the borders only.
            nodes.nodes.remove(node)
            node.input[0] = nodes.add("Reshape", node.input[0], shape)
            nodes.nodes.append(node)
        else:
            node.output[index] = f"{tensor.name}/of one"
            nodes.add("Reshape", node.output[index], shape, out=tensor.name)


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
