"""The pipeline file as typed models: types and defaults. What concerns several keys at once is in `rules.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator

from tricade.settings import Pad

from .families import AUTO, FAMILIES
from .heads import HEADS
from .want import MAX_CANDIDATES

METADATA = "metadata:"  # labels: metadata:KEY takes them out of the ONNX file
NAME_FORM = "a name of small letters, digits and _, beginning with a letter"


class Section(BaseModel):
    """Frozen, complete, no unknown keys. A field's description says what its value should be."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _labels(value: Any) -> tuple[str, ...] | str:
    if isinstance(value, str) and value and value != METADATA:
        return value
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise ValueError("quote names that YAML reads as something else, like 0 or no")
    if wrong := [name for name in value if not name or "\n" in name]:
        raise ValueError(f"{wrong[0]!r} is no name")
    return tuple(value)


def _known(names: Any) -> AfterValidator:
    def check(value: str) -> str:
        if value not in names:
            raise ValueError("")
        return value

    return AfterValidator(check)


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Count = Annotated[int, Field(ge=1)]
Grey = Annotated[int, Field(ge=0, le=255)]
Share = Annotated[float, Field(ge=0, le=1)]
Size = tuple[Count, Count]  # height, width in pixels
Triple = tuple[float, float, float]
Positive = Annotated[float, Field(gt=0)]
Labels = Annotated[tuple[str, ...] | str, PlainValidator(_labels)]  # names, or where they are
Precision = Literal["fp32", "fp16", "int8"]
Capability = Annotated[str, Field(pattern=r"^\d+\.\d$")]  # of a kind of GPU, as NVIDIA writes it

SIZE_FORM = "two whole numbers, height and width in pixels, e.g. [640, 640]"
LABELS_FORM = "a list of names, a file with one name a line, or metadata:KEY"
CANDIDATES_FORM = f"a whole number, 1 to {MAX_CANDIDATES}"
PRECISION_FORM = "one of fp32, fp16, int8"


class Normalize(Section):
    """The network sees (x - mean) / std of 0..255, in this order of colours."""

    colour: Literal["rgb", "bgr"] = Field(default="rgb", description="rgb or bgr")
    mean: Triple = Field(default=(0.0, 0.0, 0.0), description="three numbers on 0..255, in the order of `colour`")
    std: tuple[Positive, Positive, Positive] = Field(
        default=(255.0, 255.0, 255.0), description="three numbers above 0, on 0..255, in the order of `colour`"
    )

    @property
    def grey(self) -> int:
        """The grey level nearest to the mean colour."""
        return min(255, max(0, round(sum(self.mean) / 3)))


def _detector_pad(data: dict[str, Any]) -> Pad:
    # Pad with 114, the grey that box detectors are trained on. A segmentation network sees a border of any colour
    # as a thing: PP-OCR finds text at the edge of an empty picture unless its own edge is repeated.
    family = FAMILIES.get(data.get("family", ""))
    return 114 if family is None or family.finds_boxes else "edge"


def _mean_pad(data: dict[str, Any]) -> int:
    normalize: Normalize = data.get("normalize", Normalize())
    return normalize.grey


def _iou(data: dict[str, Any]) -> float:
    # Tiles find the same thing twice, whatever the family.
    family = FAMILIES.get(data.get("family", ""))
    return 1.0 if family is not None and family.suppressed and not data.get("tile") else 0.5


def _candidates(data: dict[str, Any]) -> int:
    # Candidates are counted before suppression: too few of them would lose objects in silence.
    return min(MAX_CANDIDATES, max(300, 10 * int(data.get("max_detections", 100))))


class Network(Section):
    """What a detector and a classifier have in common."""

    onnx: str = Field(min_length=1, description="the path of an ONNX file")
    size: Size = Field(description=SIZE_FORM)
    normalize: Normalize = Field(default=Normalize(), description="a section with colour, mean, std")
    max_batch: Count = Field(default=8, description="a whole number from 1")
    opt_batch: Count | None = Field(default=None, description="the likeliest batch, a whole number up to max_batch")
    instances: Count | None = Field(default=None, description="a whole number from 1")
    max_delay_us: int | None = Field(default=None, ge=0, description="microseconds, a whole number from 0")
    precision: Precision | None = Field(default=None, description=PRECISION_FORM)
    keep_fp32: tuple[str, ...] = Field(
        default=(), description="a list of node names, * stands for any characters, e.g. [/model.22/*]"
    )


class Tile(Section):
    """Large pictures are cut into tiles, each of which the detector sees at its own size."""

    size: Size = Field(description=SIZE_FORM)
    overlap: float = Field(default=0.2, ge=0, lt=1, description="a share of a tile's side, 0 to below 1")


class Detector(Network):
    """The network that finds things in a picture."""

    labels: Labels = Field(description=LABELS_FORM)
    family: Annotated[str, _known((AUTO, *FAMILIES))] = Field(
        description=f"{AUTO} or one of " + ", ".join(sorted(FAMILIES))
    )
    decoded: bool = Field(default=False, description="true or false")
    activation: Literal["sigmoid", "softmax"] = Field(default="sigmoid", description="sigmoid or softmax")
    resize: Literal["letterbox", "stretch"] = Field(default="letterbox", description="letterbox or stretch")
    pad: Grey | Literal["edge"] = Field(default_factory=_detector_pad, description="a grey level, 0 to 255, or edge")
    threshold: Share = Field(default=0.25, description="the lowest score that counts, 0 to 1")
    tile: Tile | None = Field(default=None, description="a section with size, overlap")
    iou: Share = Field(default_factory=_iou, description="the overlap above which the weaker box goes, 0 to 1")
    max_detections: int = Field(
        default=100, ge=1, le=MAX_CANDIDATES, description=f"a whole number, 1 to {MAX_CANDIDATES}"
    )
    candidates: int = Field(
        default_factory=_candidates, ge=1, le=MAX_CANDIDATES, description=f"a whole number, 1 to {MAX_CANDIDATES}"
    )
    min_size: float = Field(default=0.0, ge=0, description="pixels of the picture, a number from 0")
    binarize: Share = Field(default=0.3, description="the probability above which a pixel is text, 0 to 1")
    unclip: float = Field(default=1.6, ge=0, description="how far a region grows, a number from 0")
    dilate: bool = Field(default=True, description="true or false")


class Classifier(Network):
    """A network that looks at the crops of what was found."""

    head: Annotated[str, _known(HEADS)] = Field(description="one of " + ", ".join(sorted(HEADS)))
    labels: Labels | None = Field(default=None, description=LABELS_FORM)
    resize: Literal["stretch", "pad", "letterbox"] = Field(
        default="stretch", description="one of stretch, pad, letterbox"
    )
    pad: Grey = Field(default_factory=_mean_pad, description="a grey level, 0 to 255")
    widths: tuple[Count, ...] | None = Field(default=None, description="ascending widths in pixels, e.g. [320, 640]")
    classes: tuple[str, ...] | None = Field(default=None, min_length=1, description="names out of detector.labels")
    padding: Share = Field(default=0.0, description="a share of a box's width and height on each side, 0 to 1")
    threshold: Share | None = Field(default=None, description="the lowest score that is an answer, 0 to 1")
    normalize_embedding: bool = Field(default=False, description="true or false")
    top_k: Count = Field(default=1, description="a whole number from 1")
    upright: Name | None = Field(default=None, description="the name of another classifier")
    upright_threshold: Share = Field(default=0.9, description="the lowest score that turns a crop, 0 to 1")
    rotate_tall: Positive | None = Field(default=None, description="a height divided by a width, above 0")


class Limits(Section):
    """What a request may hold; checked before decoding."""

    max_images: Count | None = Field(default=None, description="a whole number from 1")
    max_bytes: Count = Field(default=20_000_000, description="bytes of one encoded image, a whole number from 1")
    max_pixels: Count = Field(default=50_000_000, description="pixels of one image, a whole number from 1")


class Frames(Section):
    """The shared-memory ring of decoded pictures that each instance of `preprocess` has."""

    ring_bytes: int = Field(default=67_108_864, ge=0, description="bytes, 0 for no ring")
    ring_slots: Count = Field(default=32, description="a whole number from 1")


class Calibration(Section):
    """Pictures to measure int8 ranges on."""

    images: str = Field(min_length=1, description="a folder of pictures")
    count: Count = Field(default=256, description="a whole number from 1")
    method: Literal["entropy", "minmax", "percentile"] = Field(
        default="percentile", description="percentile, entropy or minmax"
    )


class Verification(Section):
    """Pictures that what is built is compared with fp32 on, and how far it may fall behind."""

    images: str | None = Field(default=None, min_length=1, description="a folder of pictures, calibration's if absent")
    count: Count = Field(default=64, description="a whole number from 1")
    max_drop: Share = Field(default=0.01, description="the most that agreement may fall short of 1, 0 to 1")


class Batching(Section):
    """How long a network waits for company."""

    max_delay_us: int = Field(default=0, ge=0, description="microseconds, a whole number from 0")


class Instances(Section):
    """Processes of each stage; `turn` runs as many as `crop`."""

    preprocess: Count = Field(default=2, description="a whole number from 1")
    crop: Count = Field(default=2, description="a whole number from 1")
    label: Count = Field(default=1, description="a whole number from 1")


class Builder(Section):
    """How TensorRT compiles; ONNX Runtime heeds none of it."""

    optimization_level: int | None = Field(
        default=None, ge=0, le=5, description="0 (compiles fast) to 5 (runs fast), TensorRT's own 3 if absent"
    )
    workspace_bytes: Count | None = Field(default=None, description="bytes of the GPU, a whole number; all if absent")
    capabilities: tuple[Capability, ...] = Field(
        default=("8.6", "8.9", "12.0"), min_length=1, description='quoted compute capabilities, e.g. ["8.6", "8.9"]'
    )


class Pipeline(Section):
    """One cascade: a detector and the classifiers of what it finds."""

    name: Name = Field(description=NAME_FORM)
    precision: Precision = Field(default="fp32", description=PRECISION_FORM)
    detector: Detector = Field(description="a section with onnx, family, size, labels")
    classifiers: dict[Name, Classifier] = Field(
        default_factory=dict, description=f"a section for each classifier, under {NAME_FORM}"
    )
    builder: Builder = Field(
        default=Builder(), description="a section with optimization_level, workspace_bytes, capabilities"
    )
    calibration: Calibration | None = Field(default=None, description="a section with images, count, method")
    verification: Verification = Field(default=Verification(), description="a section with images, count, max_drop")
    batching: Batching = Field(default=Batching(), description="a section with max_delay_us")
    instances: Instances = Field(default=Instances(), description="a section with preprocess, crop, label")
    limits: Limits = Field(default=Limits(), description="a section with max_images, max_bytes, max_pixels")
    frames: Frames = Field(default=Frames(), description="a section with ring_bytes, ring_slots")

    @property
    def max_images(self) -> int:
        """Images of one request: no more than the detector takes at once."""
        return self.limits.max_images or self.detector.max_batch


def in_fp32(pipeline: Pipeline) -> Pipeline:
    """The same cascade, all of it in fp32; it needs no pictures, as others are held to it."""
    network: dict[str, Any] = {"precision": None}
    update = {
        "precision": "fp32",
        "detector": pipeline.detector.model_copy(update=network),
        "classifiers": {name: each.model_copy(update=network) for name, each in pipeline.classifiers.items()},
        "calibration": None,
        "verification": Verification(),
    }
    return pipeline.model_copy(update=update)
