"""`tried`: a network as it was built and in fp32, side by side over the pictures of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from tricade.stage import Arrays

from .evidence import Evidence
from .local import LocalPipeline, Run
from .networks import Job
from .pictures import Pictures
from .runtime import Runtime
from .verify import ClassifierComparison, DetectorComparison, Found, Plots, Verification
from .weights import Report

FOUND = ("BOXES", "SCORES", "CLASS")
BELOW = 0.5  # of the threshold; detections down to there are looked at, so that scores may move a little


@dataclass(frozen=True)
class Trial:
    """What is tried: `run` answers as the network is served, `names` are what its indices mean."""

    job: Job
    run: Run
    names: Sequence[str]
    label: str  # the file that is tried, for the report


def tried(trial: Trial, evidence: Evidence, pictures: Pictures, report: Report) -> tuple[Verification, Plots]:
    """Raises `BuildError` where the pictures cannot be used."""
    job = trial.job
    folded = evidence.folded(job.name)
    reference = run_of(folded.model, folded.raw)
    if job.name == "detector":
        return _detector(trial, reference, evidence, pictures, report)
    return _classifier(trial, reference, evidence, pictures, report)


def run_of(model: onnx.ModelProto, also: Sequence[str]) -> Run:
    """A graph in ONNX Runtime on the CPU; it answers with the tensors `also` inside it, too, as far as it has them."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    made = {out for node in shown.graph.node for out in node.output} - {out.name for out in shown.graph.output}
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in also if name in made)
    return Runtime(shown).run


def _classifier(
    trial: Trial, reference: Run, evidence: Evidence, pictures: Pictures, report: Report
) -> tuple[Verification, Plots]:
    job, classifier = trial.job, evidence.pipeline.classifiers[trial.job.name]
    comparison = ClassifierComparison(head=classifier.head, names=trial.names, threshold=classifier.threshold or 0.0)
    samples = evidence.samples(job.name, pictures)
    for done, sample in enumerate(samples, start=1):
        comparison.add(sample.picture, reference(sample.inputs), trial.run(sample.inputs))
        report(f"verifying {job.model}: {trial.label}", done / len(samples))
    return comparison.done(max_drop=evidence.pipeline.verification.max_drop)


def _detector(
    trial: Trial, reference: Run, evidence: Evidence, pictures: Pictures, report: Report
) -> tuple[Verification, Plots]:
    """The detections are those of `crop`, so suppression and size limits count too."""
    job, detector = trial.job, evidence.pipeline.detector
    comparison = DetectorComparison(threshold=detector.threshold, names=trial.names)
    pipeline = LocalPipeline(evidence.repository, evidence.pipeline.name)
    try:
        for place, file in enumerate(pictures.files):
            inputs = {
                "IMAGE": np.array([pictures.encoded(place)], np.object_),
                "THRESHOLD": np.array([detector.threshold * BELOW], np.float32),
            }
            ours, found = _detections(pipeline, job.model, reference, inputs)
            theirs, candidate = _detections(pipeline, job.model, trial.run, inputs)
            comparison.add(file.name, errors_of=(ours, theirs), reference=found, candidate=candidate)
            report(f"verifying {job.model}: {trial.label}", (place + 1) / len(pictures.files))
    finally:
        pipeline.close()
    return comparison.done(max_drop=evidence.pipeline.verification.max_drop)


def _detections(pipeline: LocalPipeline, model: str, run: Run, inputs: Arrays) -> tuple[Arrays, Found]:
    """What the network answers, and what is found by that."""
    answers: list[Arrays] = []
    pipeline.networks[model] = _noted(run, answers)
    boxes, scores, classes = pipeline.tensors(inputs, FOUND).values()
    (answer,) = answers
    return answer, Found(boxes, scores, classes)


def _noted(run: Run, answers: list[Arrays]) -> Callable[[Arrays], Arrays]:
    def noted(inputs: Arrays) -> Arrays:
        answers.append(run(inputs))
        return answers[-1]

    return noted
