"""The Triton models of a pipeline and the tensors between them, as `docs/architecture.md` names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tricade.stage import Tensor

from .families import FAMILIES
from .heads import HEADS
from .parameters import crop_parameters, label_parameters, preprocess_parameters, turn_parameters
from .shapes import Shapes
from .spec import Classifier, Pipeline

THRESHOLD = Tensor("THRESHOLD", "FP32", (1,))
SIZE = Tensor("SIZE", "INT32", (-1, 2))
FRAME = Tensor("FRAME", "UINT8", (-1,))
FOUND = (
    Tensor("COUNT", "INT32", (-1,)),
    Tensor("TRUNCATED", "INT32", (-1,)),
    Tensor("BOXES", "FP32", (-1, 4)),
    Tensor("CORNERS", "FP32", (-1, 4, 2)),
    Tensor("SCORES", "FP32", (-1,)),
)
CLASS = Tensor("CLASS", "INT32", (-1,))
OPTIONAL = frozenset({"THRESHOLD"})


@dataclass(frozen=True)
class Step:
    """One model, and which of the ensemble's tensors its inputs and outputs are (own name → ensemble's)."""

    model: str
    backend: str  # a stage's name, or "" for a network
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)
    instances: int | None = None  # of a network: as many as suit what runs it
    max_delay_us: int = 0  # a network waits so long for company
    max_batch: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict)
    renamed_inputs: Mapping[str, str] = field(default_factory=dict)

    def edge(self, tensor: str) -> str:
        """The ensemble's name of one of this model's outputs."""
        return self.renamed.get(tensor, tensor)

    def source(self, tensor: str) -> str:
        """The ensemble's name of one of this model's inputs."""
        return self.renamed_inputs.get(tensor, self.edge(tensor))


@dataclass(frozen=True)
class Wiring:
    """All models of a pipeline; `inputs` and `outputs` are the ensemble's own."""

    name: str
    steps: tuple[Step, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def wiring_of(pipeline: Pipeline, shapes: Mapping[str, Shapes], names: Mapping[str, tuple[str, ...]]) -> Wiring:
    """`shapes` and `names` (of the classes) of each network: "detector" or the classifier's name."""
    image = Tensor("IMAGE", "STRING", (-1,))
    labels = [Tensor("LABELS", "STRING", (-1,))]
    for name, classifier in pipeline.classifiers.items():
        labels += _answers(name, classifier, shapes[name])
    steps = (
        _preprocess(pipeline, image, shapes["detector"].input),
        _network(pipeline, "detector", shapes["detector"]),
        _crop(pipeline, shapes, names["detector"]),
        *_classifiers(pipeline, shapes, names),
        _label(pipeline, shapes, tuple(labels)),
    )
    outputs = (FOUND[0], FOUND[1], SIZE, *FOUND[2:], *labels)
    return Wiring(pipeline.name, steps, inputs=(image, THRESHOLD), outputs=outputs)


def _preprocess(pipeline: Pipeline, image: Tensor, tensor: Tensor) -> Step:
    return Step(
        model=f"{pipeline.name}_preprocess",
        backend="preprocess",
        inputs=(image, THRESHOLD),
        outputs=(_batched(tensor), FRAME, SIZE),
        parameters=preprocess_parameters(pipeline),
        instances=pipeline.instances.preprocess,
    )


def _network(pipeline: Pipeline, name: str, shapes: Shapes) -> Step:
    """A network; a classifier's tensors get its name in front."""
    detector = name == "detector"
    tensors = (shapes.input, *shapes.outputs)
    section = pipeline.detector if detector else pipeline.classifiers[name]
    return Step(
        model=f"{pipeline.name}_{name}",
        backend="",
        inputs=(shapes.input,),
        outputs=shapes.outputs,
        instances=section.instances,
        max_batch=section.max_batch,
        max_delay_us=pipeline.batching.max_delay_us if section.max_delay_us is None else section.max_delay_us,
        renamed={} if detector else {tensor.name: _edge(name, tensor.name) for tensor in tensors},
    )


def _crop(pipeline: Pipeline, shapes: Mapping[str, Shapes], found: tuple[str, ...]) -> Step:
    made: list[Tensor] = []
    for name, classifier in pipeline.classifiers.items():
        made += _packed(name) if classifier.upright else _crops(name, shapes[name])
    candidates = [_batched(tensor) for tensor in shapes["detector"].outputs]
    return Step(
        model=f"{pipeline.name}_crop",
        backend="crop",
        inputs=(*candidates, FRAME),
        outputs=(*FOUND, CLASS, *made),
        parameters=crop_parameters(pipeline, found, boxes=FAMILIES[pipeline.detector.family].finds_boxes),
        instances=pipeline.instances.crop,
    )


def _classifiers(
    pipeline: Pipeline, shapes: Mapping[str, Shapes], names: Mapping[str, tuple[str, ...]]
) -> Iterator[Step]:
    """Each classifier's network, behind its `turn` where it has one; those come after the ones they follow."""
    for name, classifier in sorted(pipeline.classifiers.items(), key=lambda item: item[1].upright is not None):
        if classifier.upright:
            yield Step(
                model=f"{pipeline.name}_turn_{name}",
                backend="turn",
                inputs=(*_packed(name), *_indices(classifier.upright, shapes[classifier.upright])),
                outputs=tuple(_crops(name, shapes[name])),
                parameters=turn_parameters(pipeline, name, names[classifier.upright]),
                instances=pipeline.instances.crop,
            )
        yield _network(pipeline, name, shapes[name])


def _label(pipeline: Pipeline, shapes: Mapping[str, Shapes], labels: tuple[Tensor, ...]) -> Step:
    answers = [tensor for name in pipeline.classifiers for tensor in _indices(name, shapes[name])]
    return Step(
        model=f"{pipeline.name}_label",
        backend="label",
        inputs=(CLASS, *answers),
        outputs=labels,
        renamed_inputs={_own(name, "EMBEDDING"): _edge(name, "EMBEDDING") for name in pipeline.classifiers},
        parameters=label_parameters(pipeline, shapes),
        instances=pipeline.instances.label,
    )


def _crops(name: str, shapes: Shapes) -> list[Tensor]:
    """What reaches a network over the ensemble's edge, and which crops those are, with the answers to the others."""
    return [
        Tensor(_own(name, "CROPS"), "UINT8", (-1, *shapes.input.dims)),
        Tensor(_own(name, "SENT"), "UINT8", (-1,)),
    ]


def _packed(name: str) -> list[Tensor]:
    return [
        Tensor(_own(name, "PACKED"), "UINT8", (-1,)),
        *(Tensor(_own(name, rows), "INT32", (-1,)) for rows in ("WIDTHS", "PACKED_ROWS")),
    ]


def _indices(name: str, shapes: Shapes) -> list[Tensor]:
    """A classifier's answers over the edge and beside it."""
    _, sent = _crops(name, shapes)
    return [sent, *(Tensor(_own(name, out.name), out.dtype, (-1, *out.dims)) for out in shapes.outputs)]


def _answers(name: str, classifier: Classifier, shapes: Shapes) -> list[Tensor]:
    """What a client gets of a classifier."""
    if not HEADS[classifier.head].labelled:
        return [Tensor(_own(name, out.name), out.dtype, (-1, *out.dims)) for out in shapes.outputs]
    k = classifier.top_k
    return [Tensor(_own(name, "LABELS"), "STRING", (-1, k)), Tensor(_own(name, "SCORES"), "FP32", (-1, k))]


def _batched(tensor: Tensor) -> Tensor:
    """The tensor as a model without batching sees it."""
    return Tensor(tensor.name, tensor.dtype, (-1, *tensor.dims))


def _own(name: str, tensor: str) -> str:
    return f"{name.upper()}_{tensor}"


def _edge(name: str, tensor: str) -> str:
    """A network's tensor inside the ensemble. `<C>_EMBEDDING` there is what `label` makes of it."""
    return _own(name, f"EDGE_{tensor}" if tensor == "EMBEDDING" else tensor)
