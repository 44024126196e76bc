"""`--objects`: shares of ranges, and a stream in which they come out."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from tricade_tune.errors import BadObjects
from tricade_tune.objects import Share, shares_from, stream_of

COUNTS = (0, 0, 1, 3, 5, 6, 40)


def test_shares_are_normalized():
    assert shares_from("0:20, 1-5:50,6-:10") == (
        Share(0, 0, 0.25),
        Share(1, 5, 0.625),
        Share(6, math.inf, 0.125),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "got ''"),
        ("5", "got '5'"),
        ("1-5", "got '1-5'"),
        ("a:3", "got 'a:3'"),
        ("-3:4", "got '-3:4'"),
        ("1:2;3:4", "got '1:2;3:4'"),
        ("0:20,", "got ''"),
        ("5-1:3", "from the lower count to the higher; got '5-1:3'"),
        ("0-3:1,2-:1", "do not overlap; 0-3 and 2- do"),
        ("4:1,4:2", "do not overlap; 4 and 4 do"),
        ("0:0,1-:0", "all shares are 0"),
    ],
)
def test_what_is_no_list_of_shares_is_told(text, said):
    with pytest.raises(BadObjects, match=r"^--objects: expected") as caught:
        shares_from(text)
    assert said in str(caught.value)


def test_a_share_of_0_needs_no_picture():
    assert shares_from("0:1,1000-:0") == (Share(0, 0, 1.0),)


def test_shares_come_out():
    stream = stream_of(COUNTS, shares_from("0:20,1-5:50,6-:30"), length=200, seed=0)

    found = Counter(COUNTS[place] for place in stream)
    assert len(stream) == 200
    assert found[0] == 40
    assert found[1] + found[3] + found[5] == 100
    assert max(found[1], found[3], found[5]) - min(found[1], found[3], found[5]) <= 1
    assert (found[6], found[40]) == (30, 30)


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_few_calls_are_shared_as_well_as_can_be(length):
    shares = shares_from("0:1,1-5:1,6-:1")

    ranges = Counter(
        next(place for place, share in enumerate(shares) if share.holds(COUNTS[picture]))
        for picture in stream_of(COUNTS, shares, length=length, seed=0)
    )

    assert ranges.total() == length
    assert max(ranges.values()) <= -(-length // 3)


def test_without_shares_every_picture_comes_as_often():
    found = Counter(stream_of(COUNTS, (), length=3 * len(COUNTS), seed=0))

    assert found == dict.fromkeys(range(len(COUNTS)), 3)


def test_a_stream_is_the_same_for_the_same_seed():
    shares = shares_from("0-3:1,4-:1")
    streams = [stream_of(COUNTS, shares, length=50, seed=seed) for seed in (0, 0, 1)]

    assert streams[0] == streams[1] != streams[2]


def test_a_range_without_a_picture_says_which_counts_there_are():
    with pytest.raises(BadObjects) as caught:
        stream_of(COUNTS, shares_from("0:1,7-39:1"), length=10, seed=0)
    assert "a picture with 7-39 objects" in str(caught.value)
    assert "0 (2 pictures), 1 (1 picture), 3 (1 picture), 5 (1 picture), 6 (1 picture), 40 (1 picture)" in str(
        caught.value
    )
