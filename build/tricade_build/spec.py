"""The pipeline file as typed models: types and defaults. What concerns several keys at once is in `rules.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator

from tricade.settings import Pad

from .families import FAMILIES
from .heads import HEADS

METADATA = "metadata:"  # labels: metadata:KEY takes them out of the ONNX file
MAX_CANDIDATES = 3840  # the largest K that TensorRT's TopK takes
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


def _candidates(data: dict[str, Any]) -> int:
    # Candidates are counted before suppression: too few of them would lose objects in silence.
    return min(MAX_CANDIDATES, max(300, 10 * int(data.get("max_detections", 100))))


class Network(Section):
    """What a detector and a classifier have in common."""

    onnx: str = Field(min_length=1, description="the path of an ONNX file")
    size: Size = Field(description=SIZE_FORM)
    normalize: Normalize = Field(default=Normalize(), description="a section with colour, mean, std")
    max_batch: Count = Field(default=8, description="a whole number from 1")
    labels: Labels = Field(description=LABELS_FORM)
    precision: Precision | None = Field(default=None, description=PRECISION_FORM)


class Detector(Network):
    """The network that finds things in a picture."""

    family: Annotated[str, _known(FAMILIES)] = Field(description="one of " + ", ".join(sorted(FAMILIES)))
    resize: Literal["letterbox", "stretch"] = Field(default="letterbox", description="letterbox or stretch")
    pad: Grey | Literal["edge"] = Field(default_factory=_detector_pad, description="a grey level, 0 to 255, or edge")
    threshold: Share = Field(default=0.25, description="the lowest score that counts, 0 to 1")
    iou: Share = Field(default=0.5, description="the overlap above which the weaker box goes, 0 to 1")
    max_detections: int = Field(
        default=100, ge=1, le=MAX_CANDIDATES, description=f"a whole number, 1 to {MAX_CANDIDATES}"
    )
    candidates: int = Field(
        default_factory=_candidates, ge=1, le=MAX_CANDIDATES, description=f"a whole number, 1 to {MAX_CANDIDATES}"
    )
    binarize: Share = Field(default=0.3, description="the probability above which a pixel is text, 0 to 1")
    unclip: float = Field(default=1.6, ge=0, description="how far a region grows, a number from 0")
    dilate: bool = Field(default=True, description="true or false")


class Classifier(Network):
    """A network that looks at the crops of what was found."""

    head: Annotated[str, _known(HEADS)] = Field(description="one of " + ", ".join(sorted(HEADS)))
    resize: Literal["stretch", "pad"] = Field(default="stretch", description="stretch or pad")
    pad: Grey = Field(default_factory=_mean_pad, description="a grey level, 0 to 255")
    widths: tuple[Count, ...] | None = Field(default=None, description="ascending widths in pixels, e.g. [320, 640]")
    classes: tuple[str, ...] | None = Field(default=None, min_length=1, description="names out of detector.labels")
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
        default="entropy", description="entropy, minmax or percentile"
    )


class Batching(Section):
    """How long a network waits for company."""

    max_delay_us: int = Field(default=500, ge=0, description="microseconds, a whole number from 0")


class Instances(Section):
    """Processes of each stage; `turn` runs as many as `crop`."""

    preprocess: Count = Field(default=2, description="a whole number from 1")
    crop: Count = Field(default=2, description="a whole number from 1")
    label: Count = Field(default=1, description="a whole number from 1")


class Pipeline(Section):
    """One cascade: a detector and the classifiers of what it finds."""

    name: Name = Field(description=NAME_FORM)
    precision: Precision = Field(default="fp32", description=PRECISION_FORM)
    detector: Detector = Field(description="a section with onnx, family, size, labels")
    classifiers: dict[Name, Classifier] = Field(
        default_factory=dict, description=f"a section for each classifier, under {NAME_FORM}"
    )
    calibration: Calibration | None = Field(default=None, description="a section with images, count, method")
    batching: Batching = Field(default=Batching(), description="a section with max_delay_us")
    instances: Instances = Field(default=Instances(), description="a section with preprocess, crop, label")
    limits: Limits = Field(default=Limits(), description="a section with max_images, max_bytes, max_pixels")
    frames: Frames = Field(default=Frames(), description="a section with ring_bytes, ring_slots")

    @property
    def max_images(self) -> int:
        """Images of one request: no more than the detector takes at once."""
        return self.limits.max_images or self.detector.max_batch
