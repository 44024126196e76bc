"""Nodes that stay in fp32, found by the names that the user's file gives them; one without a name has its output's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import onnx

from .errors import FoldError
from .plain import NETWORK, title_of

NEAR = 3  # names that are proposed
_NUMBER = re.compile(r" #\d+$")  # behind a name that several nodes have


def named(model: onnx.ModelProto) -> None:
    """Give each node of the graph a name of its own, in place: the first output's, or the same with a number."""
    given = {node.name for node in model.graph.node if node.name}
    used: set[str] = set()
    for node in model.graph.node:
        wanted = node.name or next(filter(None, node.output), node.op_type)
        name, number = wanted, 1
        while name in used or (name in given and name != node.name):
            number += 1
            name = f"{wanted} #{number}"
        node.name = name
        used.add(name)


def kept(graph: onnx.GraphProto, patterns: Sequence[str]) -> frozenset[str]:
    """The names of the network's nodes that any pattern matches; `FoldError` for one that matches none.

    The graph has gone through `named`. `*` stands for any characters; of nodes that share a name all are meant.
    """
    titles = {node.name: title_of(node.name) for node in graph.node if node.name.startswith(NETWORK)}
    found: set[str] = set()
    for pattern in patterns:
        matching = {name for name, title in titles.items() if _matches(title, pattern)}
        if not matching:
            raise FoldError(_unmatched(pattern, [_NUMBER.sub("", title) for title in titles.values()]))
        found |= matching
    return frozenset(found)


def _matches(title: str, pattern: str) -> bool:
    # A name may hold what is special in a pattern, e.g. features[0].
    return any(name == pattern or fnmatchcase(name, pattern) for name in (title, _NUMBER.sub("", title)))


def _unmatched(pattern: str, titles: Sequence[str]) -> str:
    near = difflib.get_close_matches(pattern.strip("*"), sorted(set(titles)), n=NEAR, cutoff=0.4)
    hint = f"near it are {', '.join(near)}" if near else f"names here look like {', '.join(titles[:NEAR])}"
    return f"expected keep_fp32 to name nodes of the network; got {pattern!r}, which none of its nodes matches; {hint}"
