"""Small ONNX networks for tests: `[n, 3, h, w]` in 0..255 or normalized to whatever output a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

ANY = ("n", 3, "h", "w")
node = helper.make_node


def model_of(
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, NDArray[Any]] | None = None,
    *,
    entry: Sequence[int | str] = ANY,
    opset: int = 13,
    ir: int = 8,
    dtype: int = TensorProto.FLOAT,
    listed: bool = False,
) -> onnx.ModelProto:
    """From `x` to the last node's output; `listed` names constants as inputs, as old exports do."""
    initializers = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    inputs = [helper.make_tensor_value_info("x", dtype, entry)]
    if listed:
        inputs += [helper.make_tensor_value_info(c.name, c.data_type, c.dims) for c in initializers]
    output = helper.make_tensor_value_info(nodes[-1].output[0], dtype, None)
    graph = helper.make_graph(list(nodes), "test", inputs, [output], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def answering(value: NDArray[np.floating[Any]], *tail: str, **keys: Any) -> onnx.ModelProto:
    """Whatever the picture: `value` for each of the batch, through the operators `tail`."""
    dtype = keys.setdefault("dtype", helper.np_dtype_to_tensor_dtype(value.dtype))
    assert dtype in (TensorProto.FLOAT, TensorProto.FLOAT16)
    opset = keys.get("opset", 13)
    ones = (1,) * value.ndim
    nodes = [
        node("GlobalAveragePool", ["x"], ["mean"]),
        node("ReduceSum", ["mean", "axes"], ["sum"], keepdims=1)
        if opset >= 13
        else node("ReduceSum", ["mean"], ["sum"], axes=[1], keepdims=1),
        node("Mul", ["sum", "zero"], ["nothing"]),
        node("Reshape", ["nothing", "shape"], ["blank"]),
        node("Add", ["blank", "value"], ["t0"]),
        *(node(op, [f"t{i}"], [f"t{i + 1}"], **_attributes(op, value)) for i, op in enumerate(tail)),
    ]
    constants = {"zero": np.zeros(1, value.dtype), "shape": np.array((-1, *ones), np.int64), "value": value[None]}
    if opset >= 13:
        constants["axes"] = np.array([1], np.int64)
    return model_of(nodes, constants, **keys)


def _attributes(op: str, value: NDArray[Any]) -> dict[str, int]:
    return {"axis": value.ndim} if op == "Softmax" else {}


def pooled_linear(*, opset: int = 13, dtype: int = TensorProto.FLOAT, **keys: Any) -> onnx.ModelProto:
    """Convolution, pooling, five logits: sensitive to colours, their order and their scale."""
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    random = np.random.default_rng(5)
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("GlobalAveragePool", ["r"], ["g"]),
        node("Flatten", ["g"], ["f"], axis=1),
        node("MatMul", ["f", "m"], ["y"]),
    ]
    constants = {
        "w": random.normal(0, 0.3, (7, 3, 3, 3)).astype(kind),
        "m": random.normal(0, 1, (7, 5)).astype(kind),
    }
    return model_of(nodes, constants, opset=opset, dtype=dtype, **keys)


def choosing(
    banks: Mapping[str, NDArray[Any]],
    *tail: onnx.NodeProto,
    outputs: Sequence[str] = (),
    sizes: str = "",
    entry: Sequence[int | str] = ANY,
    opset: int = 13,
    dtype: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """For a picture of grey level i / 255 everywhere, row i of each bank: `outputs`, all banks unless given.

    `tail` are nodes behind the banks, `sizes` the name of an input INT64 [n, 2] that they may use.
    """
    nodes = [
        node("GlobalAveragePool", ["x"], ["mean"]),
        node("Slice", ["mean", "zero", "one", "one"], ["red"]),
        node("Reshape", ["red", "flat"], ["grey"]),
        node("Mul", ["grey", "white"], ["level"]),
        node("Round", ["level"], ["whole"]),
        node("Cast", ["whole"], ["any"], to=TensorProto.INT64),
        node("Mod", ["any", "rows"], ["row"]),
        *(node("Gather", [f"bank {name}", "row"], [name], axis=0) for name in banks),
        *tail,
    ]
    constants = {"zero": np.array([0]), "one": np.array([1]), "flat": np.array([-1])}
    constants["rows"] = np.array(len(next(iter(banks.values()))))
    constants["white"] = np.array(255, helper.tensor_dtype_to_np_dtype(dtype))
    constants |= {f"bank {name}": values for name, values in banks.items()}
    inputs = [helper.make_tensor_value_info("x", dtype, entry)]
    if sizes:
        inputs.append(helper.make_tensor_value_info(sizes, TensorProto.INT64, [entry[0], 2]))
    graph = helper.make_graph(
        nodes,
        "choosing",
        inputs,
        [helper.make_empty_tensor_value_info(name) for name in outputs or banks],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    for output in graph.output:
        kind = helper.np_dtype_to_tensor_dtype(banks[output.name].dtype) if output.name in banks else dtype
        output.CopyFrom(helper.make_tensor_value_info(output.name, kind, None))
    domains = {each.domain for each in tail if each.domain}
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in sorted(domains))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(model: onnx.ModelProto, value: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The outputs by name."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {session.get_inputs()[0].name: value}), strict=True))
