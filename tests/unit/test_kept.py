"""`tricade_build.kept`: names for all nodes, and those that a user's patterns mean."""

from __future__ import annotations

import graphs
import numpy as np
import onnx
import pytest

from tricade_build.errors import FoldError
from tricade_build.kept import kept, named

node = graphs.node


def chain(*names: str) -> onnx.ModelProto:
    """Relus of these names, as they lie in a folded graph: `tensor i` to `tensor i + 1`, then one of ours."""
    nodes = [
        node("Relu", [f"network/t{i}"], [f"network/t{i + 1}"], name=name and f"network/{name}")
        for i, name in enumerate(names)
    ]
    nodes.append(node("Relu", [f"network/t{len(names)}"], ["SCORE"], name="tricade/0/Relu"))
    return graphs.model_of(nodes, {})


def names(model: onnx.ModelProto) -> list[str]:
    return [each.name for each in model.graph.node]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        (["a", "b"], ["network/a", "network/b"]),
        (["", "b"], ["network/t1", "network/b"]),
        (["a", "a", "a"], ["network/a", "network/a #2", "network/a #3"]),
        (["a", "a", "a #2"], ["network/a", "network/a #3", "network/a #2"]),
        (["", "t1"], ["network/t1 #2", "network/t1"]),
    ],
    ids=["none", "as they are", "an output's", "repeated", "a number that is taken", "an output's that is taken"],
)
def test_every_node_gets_a_name_of_its_own(given: list[str], expected: list[str]) -> None:
    model = chain(*given)
    named(model)
    assert names(model) == [*expected, "tricade/0/Relu"]
    named(model)
    assert names(model) == [*expected, "tricade/0/Relu"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/stem/conv", {"/stem/conv"}),
        ("/stem/*", {"/stem/conv", "/stem/act"}),
        ("*conv", {"/stem/conv", "/head[0]/conv"}),
        ("/head[0]/conv", {"/head[0]/conv"}),
        ("/head[[]0]/*", {"/head[0]/conv"}),
        ("twice", {"twice", "twice #2"}),
        ("t6", {"t6"}),
        ("*", {"/stem/conv", "/stem/act", "/head[0]/conv", "twice", "twice #2", "t6"}),
    ],
)
def test_patterns_match_names_as_the_file_has_them(pattern: str, expected: set[str]) -> None:
    model = chain("/stem/conv", "/stem/act", "/head[0]/conv", "twice", "twice", "")
    named(model)
    assert kept(model.graph, [pattern]) == {f"network/{name}" for name in expected}


def test_several_patterns_are_one_set_and_none_an_empty_one() -> None:
    model = chain("a", "b", "c")
    named(model)
    assert kept(model.graph, ["a", "[bc]", "a"]) == {"network/a", "network/b", "network/c"}
    assert kept(model.graph, []) == frozenset()


def test_our_own_nodes_are_never_meant() -> None:
    model = chain("a")
    named(model)
    for pattern in ("tricade/*", "0/Relu", "network/a"):
        with pytest.raises(FoldError, match="which none of its nodes matches"):
            kept(model.graph, [pattern])


def test_a_pattern_that_matches_nothing_is_told_what_is_near() -> None:
    model = chain("/model.22/cv2/conv", "/model.22/cv3/conv", "/model.0/conv")
    named(model)
    with pytest.raises(FoldError) as caught:
        kept(model.graph, ["/model.0/conv", "/model.22/cv4/conv"])
    assert str(caught.value) == (
        "expected keep_fp32 to name nodes of the network; got '/model.22/cv4/conv', which none of its nodes matches; "
        "near it are /model.22/cv3/conv, /model.22/cv2/conv, /model.0/conv"
    )
    with pytest.raises(FoldError, match=r"names here look like /model.22/cv2/conv, "):
        kept(model.graph, ["Ω"])


def test_case_counts() -> None:
    model = chain("Conv")
    named(model)
    with pytest.raises(FoldError):
        kept(model.graph, ["conv"])


def test_a_folded_graph_is_named_without_changing_its_answers() -> None:
    model = graphs.pooled_linear()
    before = graphs.run(model, np.ones((1, 3, 4, 4), np.float32))["y"]
    named(model)
    np.testing.assert_array_equal(graphs.run(model, np.ones((1, 3, 4, 4), np.float32))["y"], before)
    assert names(model) == ["c", "r", "g", "f", "y"]
