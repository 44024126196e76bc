"""A value set in a YAML text: what stands on other lines, and around it on its own, stays as it is."""

from __future__ import annotations

import pytest
import yaml

from tricade_tune.yaml_text import with_value

BESIDE = ("batch", "size")
LONG = ", ".join(str(width) for width in range(320, 1920, 16))

# Before, keys, after; the value is 16.
CASES = {
    "a number": ("a:\n  n: 8\n  m: 1\n", "a.n", "a:\n  n: 16\n  m: 1\n"),
    "a comment keeps its column": ("a:\n  n: 8     # is\n", "a.n", "a:\n  n: 16    # is\n"),
    "a comment keeps its distance": ("n: 8 # is\n", "n", "n: 16 # is\n"),
    "a longer number": ("n: 1024  # is\n", "n", "n: 16    # is\n"),
    "odd spaces": ("n :    8   \nm:    1\n", "n", "n :    16   \nm:    1\n"),
    "null": ("a: {n: ~}\n", "a.n", "a: {n: 16}\n"),
    "nothing": ("a:\n  n:\n  m: 1\n", "a.n", "a:\n  n: 16\n  m: 1\n"),
    "nothing but a comment": ("n:   # is\n", "n", "n: 16 # is\n"),
    "an anchor and a tag stay": ("n: &n !!int 8\n", "n", "n: &n !!int 16\n"),
    "an alias": ("m: &m 8\nn: *m\n", "n", "m: &m 8\nn: 16\n"),
    "in braces": ("a: {m: 1, n: 8 , o: [1,2]}   # is\n", "a.n", "a: {m: 1, n: 16 , o: [1,2]}   # is\n"),
    "in braces on lines": ("a: {\n  n: 8,  # is\n  m: 1 }\n", "a.n", "a: {\n  n: 16,  # is\n  m: 1 }\n"),
    "quoted keys": ("'a': {\"n\": 8}\n", "a.n", "'a': {\"n\": 16}\n"),
    "a mark of the end": ("---\nn: 8\n...\n", "n", "---\nn: 16\n...\n"),
    "a long line": (f"w: [{LONG}]   # all\nn: 8\n", "n", f"w: [{LONG}]   # all\nn: 16\n"),
    "no line end": ("m: 1\nn: 8", "n", "m: 1\nn: 16"),
    "another alphabet": ("é: {ü: 1}\nn: 8 # 字\n", "n", "é: {ü: 1}\nn: 16 # 字\n"),
    "a byte order mark": ("\ufeffm: 1\nn: 8\n", "n", "\ufeffm: 1\nn: 16\n"),
    "added": ("a:\n  m: 1\nb: 2\n", "a.n", "a:\n  m: 1\n  n: 16\nb: 2\n"),
    "added with four spaces": ("a:\n    m: 1  # is\n\nb: 2\n", "a.n", "a:\n    m: 1  # is\n    n: 16\n\nb: 2\n"),
    "added beside": ("a:\n  size: 1   # is\n  # m\n  m: 1\n", "a.n", "a:\n  size: 1   # is\n  n: 16\n  # m\n  m: 1\n"),
    "added beside the first": ("a: {size: 1, batch: 2, m: 3}\n", "a.n", "a: {size: 1, batch: 2, n: 16, m: 3}\n"),
    "added beside a list on lines": (
        "a:\n  size: [1,\n     2]  # is\n  m: 1\n",
        "a.n",
        "a:\n  size: [1,\n     2]  # is\n  n: 16\n  m: 1\n",
    ),
    "added beside a list of dashes": (
        "a:\n  size:\n  - 1\n  - 2\n  m: 1\n",
        "a.n",
        "a:\n  size:\n  - 1\n  - 2\n  n: 16\n  m: 1\n",
    ),
    "added behind what a list's comment says": (
        "a:\n  size:\n    - 1\n    # - 2\n  # m\n  m: 1\n",
        "a.n",
        "a:\n  size:\n    - 1\n    # - 2\n  n: 16\n  # m\n  m: 1\n",
    ),
    "added beside a text on lines": (
        "a:\n  size: |\n    1\n  m: 1\n",
        "a.n",
        "a:\n  size: |\n    1\n  n: 16\n  m: 1\n",
    ),
    "added beside an alias": ("s: &s 1\na: {size: *s, m: 1}\n", "a.n", "s: &s 1\na: {size: *s, n: 16, m: 1}\n"),
    "added in braces": ("a: { m: 1 }  # is\n", "a.n", "a: { m: 1, n: 16 }  # is\n"),
    "added in braces with a last comma": ("a: {m: 1,}\n", "a.n", "a: {m: 1, n: 16,}\n"),
    "added in braces on lines": ("a: {\n  m: 1   # is\n}\n", "a.n", "a: {\n  m: 1, n: 16   # is\n}\n"),
    "added in empty braces": ("a: {}\n", "a.n", "a: {n: 16}\n"),
    "added to an anchor": ("a: &a\n  m: 1\nb: 2\n", "a.n", "a: &a\n  m: 1\n  n: 16\nb: 2\n"),
    "added to what is merged": (
        "a: &a {m: 1, n: 8}\nb:\n  <<: *a\n  o: 2\n",
        "b.n",
        "a: &a {m: 1, n: 8}\nb:\n  <<: *a\n  o: 2\n  n: 16\n",
    ),
    "added to an alias": ("a: &a {m: 1}\nb: *a  # is\n", "b.n", "a: &a {m: 1}\nb: {<<: *a, n: 16}  # is\n"),
    "added before another document could begin": ("a:\n  m: 1\n...\n", "a.n", "a:\n  m: 1\n  n: 16\n...\n"),
    "added without a line end": ("a:\n  m: 1", "a.n", "a:\n  m: 1\n  n: 16"),
    "added on the only line": ("m: 1", "n", "m: 1\nn: 16"),
    "a section": ("a:\n  m: 1\n  # o: 2\n\n# End.\n", "b.n", "a:\n  m: 1\n  # o: 2\nb: {n: 16}\n\n# End.\n"),
    "a section in braces": ("{a: {m: 1}}\n", "b.n", "{a: {m: 1}, b: {n: 16}}\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "keys", "after"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_value(before: str, keys: str, after: str, line_end: str) -> None:
    before, after = (text.replace("\n", line_end) for text in (before, after))
    if line_end not in before:
        after = after.replace("\r\n", "\n")  # a text of one line does not say how lines end

    assert with_value(before, keys.split("."), 16, beside=BESIDE) == after


@pytest.mark.parametrize(("before", "keys", "after"), CASES.values(), ids=CASES)
def test_the_expected_texts_mean_what_they_should(before: str, keys: str, after: str) -> None:
    """Held to PyYAML, so that a mistake in this table is not taken for the truth."""
    *above, key = keys.split(".")
    meant = yaml.safe_load(before)
    section = meant
    for name in above:
        section[name] = dict(section.get(name, {}))
        section = section[name]
    section[key] = 16

    assert yaml.safe_load(after) == meant


def test_a_line_that_ends_otherwise_than_the_others_stays() -> None:
    before = "a:\r\n  m: 1\nb: 2\r\n"

    assert with_value(before, ("b",), 3) == "a:\r\n  m: 1\nb: 3\r\n"
