"""Parameters of config.pbtxt to settings, complete or not at all."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tricade.errors import BadSettings
from tricade.settings import Size, groups_of, settings_from_parameters


@dataclass(frozen=True)
class Example:
    size: Size
    threshold: float
    name: str
    widths: tuple[int, ...] | None = None
    dilate: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"parameter 'threshold' should be 0 to 1, is {self.threshold}")


GIVEN = {"size": "48,320", "threshold": "0.5", "name": "text"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, Example((48, 320), 0.5, "text")),
        ({"widths": "320,640", "dilate": "true"}, Example((48, 320), 0.5, "text", (320, 640), True)),
    ],
)
def test_complete(more, expected):
    assert settings_from_parameters(Example, GIVEN | more, where="text_crop") == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "text_crop: parameter 'size' is missing; render the repository again with tricade build"),
        (GIVEN | {"sise": "1"}, "text_crop: unknown parameter 'sise'; known are dilate, name, size, threshold, widths"),
        (GIVEN | {"size": "48"}, "text_crop: parameter 'size' should be height,width, is '48'"),
        (GIVEN | {"threshold": "half"}, "text_crop: parameter 'threshold' should be a number, is 'half'"),
        (GIVEN | {"threshold": "2"}, "text_crop: parameter 'threshold' should be 0 to 1, is 2.0"),
        (GIVEN | {"dilate": "yes"}, "text_crop: parameter 'dilate' should be true or false, is 'yes'"),
        (GIVEN | {"widths": "a"}, "text_crop: parameter 'widths' should be whole numbers separated by commas, is 'a'"),
    ],
)
def test_incomplete_or_wrong_stops_the_model(parameters, message):
    with pytest.raises(BadSettings) as caught:
        settings_from_parameters(Example, parameters, where="text_crop")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ({}, {})),
        ({"a": "1", "c.a": "2", "c.b": "3", "d.a": "4"}, ({"a": "1"}, {"c": {"a": "2", "b": "3"}, "d": {"a": "4"}})),
    ],
)
def test_groups(parameters, expected):
    assert groups_of(parameters) == expected
