"""Verification: is what was built as good as fp32? Pure comparison of answers; others run the networks."""

from .boxes import Found
from .classifier import ClassifierComparison
from .detector import DetectorComparison
from .page import page
from .plots import Plots
from .table import rows
from .verification import Verification, Worst, failure

__all__ = [
    "ClassifierComparison",
    "DetectorComparison",
    "Found",
    "Plots",
    "Verification",
    "Worst",
    "failure",
    "page",
    "rows",
]
