"""`tricade_build.checks`: one damage to a rendered repository, and the one finding that tells it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cascade
import onnx
import pytest
from google.protobuf import text_format
from onnx import TensorProto
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig

from tricade.gpu import Gpu
from tricade.publishing import JOURNAL
from tricade_build.build import build
from tricade_build.checks import check, manifests
from tricade_build.runtime import newest

Damage = Callable[[Path], None]
CONFIG, FALLBACK = "config.pbtxt", "configs/onnxruntime.pbtxt"


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`squares` with a second classifier whose crops are turned by a third one's answer."""
    folder = tmp_path_factory.mktemp("checked")
    upright = cascade.colour_section(resize="pad", labels=["0", "180", *"abcdef"])
    turned = cascade.colour_section(resize="pad", upright="up")
    path = cascade.write(folder / "pipeline", classifiers={"up": upright, "turned": turned})
    build(path, repository=folder / "repository")
    return folder / "repository"


@pytest.fixture
def repository(rendered: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(rendered, tmp_path / "repository"))


@dataclass(frozen=True)
class Case:
    """What is done, and the finding: severity, model and parts of the problem."""

    damage: Damage
    severity: str
    model: str
    said: tuple[str, ...]


def edited(model: str, edit: Callable[[Any], object], *files: str) -> Damage:
    """Change configurations of a model as messages, keeping whose they are."""

    def damage(repository: Path) -> None:
        for name in files or (CONFIG,):
            file = repository / model / name
            text = file.read_text(encoding="utf-8")
            config = text_format.Parse(text, ModelConfig())
            edit(config)
            file.write_text(text.partition("\n")[0] + "\n" + text_format.MessageToString(config), encoding="utf-8")

    return damage


def both(model: str, edit: Callable[[Any], object]) -> Damage:
    return edited(model, edit, CONFIG, FALLBACK)


def parameter(model: str, name: str, value: str | None) -> Damage:
    """Set a parameter, or with None remove it."""

    def edit(config: Any) -> None:
        if value is None:
            del config.parameters[name]
        else:
            config.parameters[name].string_value = value

    return edited(model, edit)


def written(file: str, data: bytes) -> Damage:
    def damage(repository: Path) -> None:
        (repository / file).write_bytes(data)

    return damage


def removed(name: str) -> Damage:
    def damage(repository: Path) -> None:
        path = repository / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    return damage


def regraphed(model: str, edit: Callable[[onnx.ModelProto], object], *, recorded: bool = True) -> Damage:
    """Change an ONNX file; with `recorded` nobody holds the old checksum."""

    def damage(repository: Path) -> None:
        file = repository / model / "1" / "model.onnx"
        graph = onnx.load(file)
        edit(graph)
        file.write_bytes(graph.SerializeToString())
        if recorded:
            (file.parent / "manifest.json").unlink()

    return damage


def remembered(model: str, edit: Callable[[dict[str, Any]], object]) -> Damage:
    """Change the records of a manifest."""

    def damage(repository: Path) -> None:
        file = repository / model / "1" / "manifest.json"
        records = json.loads(file.read_bytes())
        edit(records)
        file.write_text(json.dumps(records))

    return damage


def step(config: Any, model: str) -> Any:
    return next(step for step in config.ensemble_scheduling.step if step.model_name == model)


def tensor(entries: Any, name: str) -> Any:
    return next(entry for entry in entries if entry.name == name)


def all_of(*damages: Damage) -> Damage:
    def damage(repository: Path) -> None:
        for each in damages:
            each(repository)

    return damage


def mapped(model: str, side: str, **names: str) -> Damage:
    """Change which of the ensemble's tensors a step takes or makes."""
    return edited("squares", lambda c: getattr(step(c, f"squares_{model}"), side).update(names))


def unmapped(model: str, side: str, name: str) -> Damage:
    return edited("squares", lambda c: getattr(step(c, f"squares_{model}"), side).pop(name))


def dims(model: str, entries: str, name: str, *sides: int, files: tuple[str, ...] = (CONFIG,)) -> Damage:
    def edit(config: Any) -> None:
        tensor(getattr(config, entries), name).dims[:] = sides

    return edited(model, edit, *files)


def dtype(model: str, entries: str, name: str, kind: str) -> Damage:
    return edited(
        model, lambda c: setattr(tensor(getattr(c, entries), name), "data_type", DataType.Value(f"TYPE_{kind}"))
    )


def stale(repository: Path) -> None:
    """A classifier that the pipeline has no more."""
    shutil.copytree(repository / "squares_colour", repository / "squares_old")
    both("squares_old", lambda c: setattr(c, "name", "squares_old"))(repository)


def circled(repository: Path) -> None:
    """`preprocess` takes what `crop` makes of its pictures."""

    def edit(config: Any) -> None:
        config.input.add(name="BACK", data_type=DataType.Value("TYPE_INT32"), dims=[-1])

    edited("squares_preprocess", edit)(repository)
    mapped("preprocess", "input_map", BACK="COUNT")(repository)


def elsewhere(graph: onnx.ModelProto) -> None:
    """The weights lie in another file."""
    weights = max(graph.graph.initializer, key=lambda weights: len(weights.raw_data))
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="weights.bin")
    weights.external_data.add(key="length", value="100")


def another_pipeline(repository: Path) -> None:
    """Somebody else's, of one step, so that there is a pipeline."""
    config = ModelConfig(name="other", platform="ensemble")
    config.input.add(name="CROPS", data_type=DataType.Value("TYPE_UINT8"), dims=[-1, 16, 16, 3])
    config.output.add(name="INDEX", data_type=DataType.Value("TYPE_INT32"), dims=[-1, 1])
    config.ensemble_scheduling.step.add(
        model_name="squares_colour", model_version=-1, input_map={"CROPS": "CROPS"}, output_map={"INDEX": "INDEX"}
    )
    (repository / "other" / "1").mkdir(parents=True)
    (repository / "other" / CONFIG).write_text(text_format.MessageToString(config))


def made_twice(config: Any) -> None:
    """`colour` is a step once more, of other crops."""
    again = {"input_map": {"CROPS": "UP_CROPS"}, "output_map": {"INDEX": "COLOUR_INDEX"}}
    config.ensemble_scheduling.step.add(model_name="squares_colour", model_version=-1, **again)


def renamed(name: str, other: str) -> Damage:
    def damage(repository: Path) -> None:
        (repository / name).rename(repository / other)

    return damage


def versioned(repository: Path) -> None:
    """Another version of the weights, as a build adds it."""
    shutil.copytree(repository / "squares_colour" / "1", repository / "squares_colour" / "2")


def emptied(repository: Path) -> None:
    """A newer version without anything in it, hidden files apart."""
    (repository / "squares_colour" / "2").mkdir()
    (repository / "squares_colour" / "2" / ".gitkeep").touch()


def planned(**engine: Any) -> Damage:
    """A plan, and what its manifest says of it."""

    def damage(repository: Path) -> None:
        (repository / "squares_colour/1/model.plan").write_bytes(b"plan")
        known = {"target": "tensorrt", "version": "10.13.3.9", "capabilities": ["8.9"], "gpu": "L4"}
        record = {"model.plan": {"engine": known | engine}}
        remembered("squares_colour", lambda records: records.update(record))(repository)

    return damage


def error(damage: Damage, model: str, *said: str) -> Case:
    return Case(damage, "error", model, said)


def warning(damage: Damage, model: str, *said: str) -> Case:
    return Case(damage, "warning", model, said)


P, D, K, C, L, T = (f"squares_{name}" for name in ("preprocess", "detector", "colour", "crop", "label", "turn_turned"))

CASES = {
    # Configurations
    "not a configuration": error(written(f"{K}/{CONFIG}", b"nmae: 1"), K, "expected a model configuration", "nmae"),
    "the ensemble's is none": error(written(f"squares/{CONFIG}", b"# Pipeline squares: \n{"), "squares", "1"),
    "not text": error(written(f"{K}/{CONFIG}", b"name: '\xff'"), K, "utf-8"),
    "another name": error(edited(L, lambda c: setattr(c, "name", "other")), L, "name of the folder", "got other"),
    "no version folder": error(removed("squares/1"), "squares", "version folder, squares/1"),
    "no version of a network": error(removed(f"{K}/1"), K, "version folder, squares_colour/1"),
    "a build that was cut off": error(written(JOURNAL, b"{}"), "", "to hold one build; one that was killed is only half"),
    "a version that is none": error(renamed(f"{P}/1", f"{P}/one"), P, "version folder, squares_preprocess/1"),
    "no backend": error(edited(T, lambda c: c.ClearField("backend")), T, "a backend or a platform"),
    "no dims": error(dims(L, "input", "CLASS"), L, "dims of each input", "CLASS, INT32, []"),
    "no outputs": error(edited(L, lambda c: c.ClearField("output")), L, "at least one output"),
    # Files of the networks
    "no model at all": error(removed(f"{K}/1/model.onnx"), K, "model.plan or model.onnx in squares_colour/1"),
    "the latest version is empty": error(emptied, K, "model.plan or model.onnx in squares_colour/2"),
    "the latest version is damaged": error(
        all_of(versioned, written(f"{K}/2/model.onnx", b"onnx"), removed(f"{K}/2/manifest.json")), K, "an ONNX file"
    ),
    "a plan alone": warning(
        all_of(removed(f"{K}/1/model.onnx"), written(f"{K}/1/model.plan", b"plan")), K, "to fall back to"
    ),
    "no fallback": error(removed(f"{K}/{FALLBACK}"), K, "expected configs/onnxruntime.pbtxt"),
    "no fallback beside a plan": warning(
        all_of(removed(f"{K}/{FALLBACK}"), written(f"{K}/1/model.plan", b"plan")), K, "configs/onnxruntime.pbtxt"
    ),
    "a fallback that is none": error(written(f"{K}/{FALLBACK}", b"}"), K, "configuration in configs/onnxruntime"),
    "a fallback of another batch": error(
        edited(K, lambda c: setattr(c, "max_batch_size", 4), FALLBACK), K, "max_batch_size 8", "got 4"
    ),
    "a fallback with another name": error(
        edited(K, lambda c: setattr(c, "name", "other"), FALLBACK), K, "onnxruntime.pbtxt", "got other"
    ),
    "a fallback of other shapes": error(
        dims(K, "output", "SCORE", -1, files=(FALLBACK,)), K, "output SCORE to be FP32 [1]", "got FP32 [-1]"
    ),
    "a fallback to a plan": error(
        edited(K, lambda c: setattr(c, "backend", "tensorrt"), FALLBACK), K, "backend onnxruntime; got tensorrt"
    ),
    # References
    "a missing model": error(
        removed(K), K, "for squares (a step), squares_crop (parameter colour.model)", "no such folder"
    ),
    "a folder without a configuration": error(removed(f"{L}/{CONFIG}"), L, "no config.pbtxt in its folder"),
    "a model nobody has": error(parameter(C, "colour.model", "nobody"), "nobody", "squares_crop (parameter colour"),
    "a version that is not there": error(
        edited("squares", lambda c: setattr(step(c, D), "model_version", 3)), "squares",
        "version 3 of squares_detector", "it is 1",
    ),
    "a version that is no longer served": error(
        all_of(versioned, edited("squares", lambda c: setattr(step(c, K), "model_version", 1))), "squares",
        "version 1 of squares_colour", "it is 2",
    ),
    "a model of nobody": warning(stale, "squares_old", "nothing calls it"),
    "no ensemble": error(
        all_of(removed("squares"), another_pipeline), "squares", "expected the ensemble of pipeline squares"
    ),
    # Edges
    "an input that the model lacks": error(mapped("crop", "input_map", EXTRA="SIZE"), "squares", "input_map says EXTRA"),
    "an output that the model lacks": error(
        mapped("crop", "output_map", EXTRA="EXTRA"), "squares", "output_map says EXTRA", "squares_crop"
    ),
    "a required input": error(unmapped("crop", "input_map", "FRAME"), "squares", "squares_crop's FRAME", "required"),
    "two producers": error(
        edited("squares", made_twice), "squares", "one step to make the tensor COLOUR_INDEX",
        "squares_colour's INDEX and squares_colour's INDEX",
    ),
    "an output nobody makes": error(
        unmapped("preprocess", "output_map", "SIZE"), "squares", "makes the tensor SIZE, for squares's SIZE, INT32 [-1,2]"
    ),
    "a tensor nobody makes": error(
        unmapped("crop", "output_map", "CLASS"), "squares", "makes the tensor CLASS", "squares_label's CLASS"
    ),
    "another type": error(
        dtype(L, "input", "CLASS", "INT64"), "squares", "equal types", "INT64 [-1]", "squares_crop's CLASS, INT32 [-1]"
    ),
    "another shape": error(
        dims(L, "input", "COLOUR_INDEX", -1, 3), "squares", "the tensor COLOUR_INDEX", "[-1,3]", "[-1,1]"
    ),
    "another shape of an output": error(
        dims("squares", "output", "BOXES", -1, 5), "squares", "the tensor BOXES", "FP32 [-1,5]", "FP32 [-1,4]"
    ),
    "crops without their number": warning(
        dims(C, "output", "COLOUR_CROPS", 16, 16, 3), "squares", "COLOUR_CROPS", "[-1,16,16,3]", "UINT8 [16,16,3]"
    ),
    "a batch that is not unpacked": error(
        dims(L, "input", "COLOUR_SCORE", 1), "squares", "batch in front", "FP32 [1], wants", "FP32 [-1,1]"
    ),
    "an optional tensor that is needed": error(
        edited("squares", lambda c: setattr(tensor(c.input, "IMAGE"), "optional", True)), "squares",
        "IMAGE in every request",
    ),
    "a circle": error(circled, "squares", "wait for each other", "squares_preprocess, squares_detector, squares_crop"),
    # Settings
    "an unknown parameter": error(parameter(C, "colour.colour", "blue"), C, "unknown parameter 'colour'"),
    "a missing parameter": error(parameter(P, "max_pixels", None), P, "'max_pixels' is missing"),
    "a wrong parameter": error(parameter(C, "threshold", "much"), C, "should be a number, is 'much'"),
    "an unknown family": error(parameter(C, "family", "yolo"), C, "should be one of"),
    "an empty parameter": error(parameter(T, "turned", ""), T, "should be a whole number, is ''"),
    "a classifier that label lacks": error(
        edited(L, lambda c: [c.parameters.pop(f"colour.{n}") for n in ("head", "labels", "top_k")]), L, "colour.…"
    ),
    # Stages and networks
    "a larger batch than the classifier's": error(
        parameter(C, "colour.max_batch", "9"), C, "colour.max_batch to be 8", "got 9"
    ),
    "a smaller batch than the classifier's": warning(
        parameter(T, "max_batch", "4"), T, "max_batch to be 8, the max_batch_size of squares_turned; got 4"
    ),
    "another size of crops": error(parameter(C, "colour.size", "16,24"), C, "colour.size to fit", "got 16,24"),
    "another size of turned crops": error(parameter(T, "size", "24,16"), T, "size to fit", "got 24,16"),
    "widths of a network with one": error(parameter(C, "up.widths", "16,32"), C, "up.widths to fit", "got 16,32"),
    "answers that the network lacks": error(
        parameter(C, "colour.answers", "INDEX,EMBEDDING"), K, "the output EMBEDDING, which squares_crop asks for"
    ),
    "crop's size": error(parameter(C, "size", "320,640"), C, "squares_detector's TENSOR [320, 320, 3]; got 320,640"),
    "preprocess's size": error(parameter(P, "size", "640,320"), P, "its TENSOR [-1, 320, 320, 3]; got 640,320"),
    "two ways to resize": error(parameter(C, "resize", "stretch"), C, "resize as preprocess has it, letterbox"),
    "too many images": error(parameter(P, "max_images", "99"), P, "max_images of at most", D, "got 99"),
    "more answers than given": error(parameter(L, "colour.top_k", "2"), L, "colour.top_k", "INDEX [1]; got 2"),
    "a class that the detector lacks": warning(
        parameter(C, "colour.classes", "0,2"), C, "colour.classes from 0 to 1", "got 2"
    ),
    "an answer that upright lacks": error(parameter(T, "turned", "8"), T, "turned from 0 to 7", "got 8"),
    # Labels
    "no label file": error(removed(f"{L}/colour.txt"), L, "colour.txt should hold one name a line"),
    "labels that are not UTF-8": error(written(f"{L}/detector.txt", b"warm\nk\xfchl\n"), L, "in UTF-8"),
    "a label too few": error(
        written(f"{L}/colour.txt", b"a\nb\nc\nd\ne\nf\ng\n"), L, "8 names in colour.txt", "squares_colour", "got 7"
    ),
    "a label of the detector too many": error(
        written(f"{L}/detector.txt", b"warm\ncool\nhot\n"), L, "2 names in detector.txt", "got 3"
    ),
    "a label too few, without a manifest": error(
        all_of(removed(f"{K}/1/manifest.json"), written(f"{L}/colour.txt", b"a\nb\n")), L, "8 names in colour.txt"
    ),
    "labels twice": warning(
        written(f"{L}/colour.txt", b"a\nb\nc\na\ne\nf\ng\nh\n"), L, "'a' is in lines 1 and 4"
    ),
    # Networks
    "not an ONNX file": error(
        all_of(written(f"{K}/1/model.onnx", b"\xff\xff onnx"), removed(f"{K}/1/manifest.json")), K, "expected an ONNX file"
    ),
    "an empty ONNX file": error(
        all_of(written(f"{K}/1/model.onnx", b""), removed(f"{K}/1/manifest.json")), K, "it holds no graph"
    ),
    "a newer opset": error(
        regraphed(K, lambda g: setattr(g.opset_import[0], "version", 99)), K, f"expected opset {newest().opset}", "got 99"
    ),
    "a newer IR version": error(
        regraphed(K, lambda g: setattr(g, "ir_version", 99)), K, f"expected IR version {newest().ir}", "got 99"
    ),
    "weights elsewhere": error(regraphed(K, elsewhere), K, "weights in weights.bin", "no such file"),
    "weights cut short": error(
        all_of(regraphed(K, elsewhere), written(f"{K}/1/weights.bin", b"half")), K, "100 bytes at least; got 4"
    ),
    "a fixed batch": error(
        regraphed(K, lambda g: setattr(g.graph.input[0].type.tensor_type.shape.dim[0], "dim_value", 8)), K,
        "batch of any size in CROPS; got [8, 16, 16, 3]",
    ),
    "another rank": error(
        regraphed(K, lambda g: g.graph.input[0].type.tensor_type.shape.dim.pop()), K, "4 dimensions; got 3"
    ),
    "another side": error(
        regraphed(K, lambda g: setattr(g.graph.input[0].type.tensor_type.shape.dim[1], "dim_value", 24)), K,
        "CROPS to be [-1, 16, 16, 3]", "got [-1, 24, 16, 3]",
    ),
    "another type in the file": error(
        regraphed(K, lambda g: setattr(g.graph.output[0].type.tensor_type, "elem_type", TensorProto.INT64)), K,
        "INDEX to be INT32, as configured; got INT64",
    ),
    "an output that the file lacks": error(
        regraphed(K, lambda g: g.graph.output.pop()), K, "the output SCORE, as configured; got INDEX"
    ),
    "an input too many": error(
        regraphed(K, lambda g: g.graph.input.add().CopyFrom(
            onnx.helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))), K, "got more too",
    ),
    # Manifests
    "a replaced file": error(
        regraphed(K, lambda g: setattr(g, "doc_string", "other"), recorded=False), K, "damaged or replaced"
    ),
    "a manifest that is none": warning(written(f"{K}/1/manifest.json", b"["), K, "expected manifest.json"),
    "fp16 that nobody compared": warning(
        remembered(K, lambda records: records["model.onnx"].update(precision="fp16")), K, "model.onnx, in fp16", "with fp32"
    ),
    "a batch beyond the profile": error(
        planned(profile={"CROPS": [[1, 16, 16, 3], [4, 16, 16, 3], [4, 16, 16, 3]]}), K, "max_batch_size of 4", "got 8"
    ),
    "another TensorRT": warning(planned(version="8.6.1"), K, "tensorrt 8.6.1", "10.13.3.9"),
    "another GPU": warning(planned(capabilities=["7.5"]), K, "compute capability 7.5 (L4), this GPU has 8.9"),
    # Rules of the product
    "a decoupled model": error(
        edited(P, lambda c: setattr(c.model_transaction_policy, "decoupled", True)), P, "decoupled"
    ),
    "a version that is asked for": error(
        both(K, lambda c: c.version_policy.specific.versions.append(1)), K, "the latest version to be served"
    ),
    "warm-up of an ensemble": error(
        edited("squares", lambda c: c.model_warmup.add(name="w")), "squares", "no model_warmup on an ensemble"
    ),
    "instances of an ensemble": error(
        edited("squares", lambda c: c.instance_group.add(count=2)), "squares", "no instance_group on an ensemble"
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known one: TensorRT 10.13, an L4."""
    monkeypatch.setattr(manifests, "_installed", lambda _package: "10.13.3.9")
    monkeypatch.setattr(manifests, "gpus", lambda: (Gpu("L4", "8.9"),))


@pytest.mark.parametrize("case", CASES)
def test_a_damage_is_one_finding(case: str, repository: Path) -> None:
    CASES[case].damage(repository)

    found = check(repository)

    assert [(each.severity, each.model) for each in found] == [(CASES[case].severity, CASES[case].model)], found
    assert all(part in found[0].problem for part in CASES[case].said), found[0].problem
    assert found[0].problem.count("\n") == 0
    assert found[0].remedy


def test_an_undamaged_repository_has_none(repository: Path) -> None:
    assert check(repository) == []


def test_what_is_wrong_with_an_older_version_has_none(repository: Path) -> None:
    versioned(repository)
    written(f"{K}/1/model.onnx", b"damaged")(repository)

    assert check(repository) == []


def test_a_plan_that_fits_has_none(repository: Path) -> None:
    planned(profile={"CROPS": [[1, 16, 16, 3], [8, 16, 16, 3], [8, 16, 16, 3]]})(repository)

    assert check(repository) == []


@pytest.mark.parametrize("engine", [{"version": None}, {"capabilities": 7}, {"profile": {"CROPS": []}}, {"gpu": None}])
def test_a_record_of_another_form_says_nothing(engine: dict[str, Any], repository: Path) -> None:
    planned(**engine)(repository)

    assert check(repository) == []


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_where_no_pipeline_is(make: Callable[[Path], object], tmp_path: Path) -> None:
    make(tmp_path / "r")

    assert ["expected a pipeline" in finding.problem for finding in check(tmp_path / "r")] == [True]


def test_a_batching_stage_is_told_with_the_tensor_and_both_shapes(repository: Path) -> None:
    edited(C, lambda c: setattr(c, "max_batch_size", 8))(repository)

    found = check(repository)

    assert all(finding.severity == "error" for finding in found if finding.model == C)
    crops = [f.problem for f in found if "COLOUR_CROPS" in f.problem]
    assert len(crops) == 1
    assert "squares_colour's CROPS, UINT8 [-1,16,16,3]" in crops[0]
    assert "squares_crop's COLOUR_CROPS, UINT8 [-1,-1,16,16,3]" in crops[0]


def test_all_mistakes_are_told_at_once(repository: Path) -> None:
    """Those of one stage too, whose class stops at the first."""
    for name in ("colour", "up"):
        parameter(C, f"{name}.resize", "squeeze")(repository)
    for case in ("not text", "a required input", "labels twice", "a missing parameter"):
        CASES[case].damage(repository)

    found = check(repository)

    assert [f.problem.partition(":")[0] for f in found if f.model == C] == ["colour", "up"]
    assert {f.model for f in found} == {"squares", K, C, L, P}
    assert [f.severity for f in found] == sorted(f.severity for f in found)


def _lines(repository: Path) -> Iterator[tuple[Path, int]]:
    for file in sorted(repository.rglob("*.pbtxt")):
        for number in range(len(file.read_text(encoding="utf-8").splitlines())):
            yield file, number


def test_no_missing_line_of_a_configuration_brings_it_down(repository: Path) -> None:
    found = []
    for file, number in list(_lines(repository))[::31]:
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        file.write_text("".join(lines[:number] + lines[number + 1 :]), encoding="utf-8")
        found += check(repository)
        file.write_text(text, encoding="utf-8")

    assert found
    assert not [finding for finding in found if re.search(r"\bNone\b", finding.problem + finding.remedy)]
