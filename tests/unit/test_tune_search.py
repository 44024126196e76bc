"""The search of `tricade tune` against a queueing model whose best setting is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import pytest

from tricade_tune.search import DELAY_US, Did, Goal, Measured, best, chosen, failure, frontier, next_setting, search
from tricade_tune.setting import Setting, Step

SERVICE_MS = {"preprocess": 8.0, "detector": 15.0, "crop": 4.0, "colour": 2.0, "label": 0.5}


def setting(**counts: int) -> Setting:
    """One of everything but for `counts`."""
    network = {"detector": {"max_delay_us": 0}, "colour": {"max_delay_us": 0, "max_batch": 8}}
    return Setting(tuple(Step(name, counts.get(name, 1), **network.get(name, {})) for name in SERVICE_MS))


@dataclass
class Queues:
    """A queue for each step, its waiting that of M/M/1 with the work spread evenly over instances; the 99th percentile
    is 4.6 times the mean, and an overloaded step loses what it cannot do. More `rows` than 1.5 are batches."""

    rate: float
    objects: int = 5
    rows: float = 2.0
    asked: list[Setting] = field(default_factory=list)

    def __call__(self, setting: Setting) -> Measured:
        self.asked.append(setting)
        steps, p99_ms, lost = {}, 0.0, 0.0
        for step in setting.steps:
            service_ms = SERVICE_MS[step.name]
            busy = self.rate * service_ms / 1e3 / step.instances
            queue_ms = service_ms * busy / (1 - busy) / step.instances if busy < 1 else 1e3 * busy
            queue_ms += (step.max_delay_us or 0) / 1e3
            lost = max(lost, 1 - 1 / busy) if busy > 1 else lost
            p99_ms += service_ms + 4.6 * queue_ms
            requests = math.ceil(self.objects / step.max_batch) if step.max_batch else 1
            p99_ms += requests - 1  # a call of its own costs a millisecond
            steps[step.name] = Did(requests, self.rows, queue_ms, service_ms, min(1.0, busy))
        return Measured(math.inf if lost > 0.01 else p99_ms, lost, 500, steps, sum(SERVICE_MS.values()) / 1e3)


def least(queues: Queues, goal: Goal, *, most: int = 5) -> int:
    """The fewest processes that meet the goal, by trying all of them."""
    found = math.inf
    settings = [setting()]
    for name in SERVICE_MS:
        settings = [each.changed(name, instances=count) for each in settings for count in range(1, most + 1)]
    for each in settings:
        if goal.met_by(replace(queues, asked=[])(each)):
            found = min(found, each.processes)
    return int(found)


@pytest.mark.parametrize(
    ("rate", "p99_ms", "start"),
    [
        (20, 100, {}),
        (100, 80, {}),
        (100, 80, {"preprocess": 2, "crop": 2}),
        (100, 80, dict.fromkeys(SERVICE_MS, 3)),
        (150, 60, {}),
        (20, 200, dict.fromkeys(SERVICE_MS, 2)),
    ],
)
def test_the_target_is_met_with_the_fewest_processes(rate, p99_ms, start):
    queues, goal = Queues(rate), Goal(p99_ms, trials=40)

    found = chosen(search(setting(**start), queues, goal), goal)

    assert found is not None
    assert goal.met_by(Queues(rate)(found))
    assert found.processes == least(queues, goal)


def test_the_longest_queue_gets_an_instance_first():
    """At 60 calls/s the detector is busy 90 % of the time and everything else less than half."""
    queues = Queues(60)

    search(setting(), queues, Goal(60, trials=2))

    assert queues.asked == [setting(), setting(detector=2)]


@pytest.mark.parametrize("p99_ms", [0.1, 20, 35, 60, 1000])
def test_nothing_is_tried_twice_nor_more_than_there_may_be(p99_ms):
    queues = Queues(120)

    tried = search(setting(crop=3), queues, Goal(p99_ms, trials=12))

    assert len(set(queues.asked)) == len(queues.asked) == len(tried) <= 12


def test_the_same_measurements_lead_the_same_way():
    first, second = Queues(130), Queues(130)

    search(setting(), first, Goal(45, trials=14))
    search(setting(), second, Goal(45, trials=14))

    assert first.asked == second.asked


def test_an_impossible_target_leaves_the_fastest():
    """29.5 ms are computed whatever is waited for."""
    goal = Goal(25, trials=16)

    tried = search(setting(), Queues(50), goal)

    assert chosen(tried, goal) is None
    assert tried[best(tried)].p99_ms == min(measured.p99_ms for measured in tried.values())


def test_one_trial_is_the_file_s_own_setting():
    assert list(search(setting(crop=2), Queues(10), Goal(1, trials=1))) == [setting(crop=2)]


def test_what_does_not_queue_is_left_alone_when_the_target_is_missed():
    tried = search(setting(), Queues(0.01), Goal(1, trials=16))

    assert list(tried) == [setting()]


def test_less_than_what_was_too_little_is_not_tried():
    goal = Goal(80, trials=40)

    tried = search(setting(**dict.fromkeys(SERVICE_MS, 3)), Queues(100), goal)

    order = list(tried)
    for place, less in enumerate(order):
        failed = [each for each in order[:place] if not goal.met_by(tried[each])]
        assert not any(less.has_at_most(each) for each in failed)


def test_what_would_be_busy_all_the_time_is_not_taken_away():
    """At 120 calls/s two detectors are busy 90 % of the time each: one cannot do it."""
    queues = Queues(120)
    start = setting(preprocess=2, detector=2)

    search(start, queues, Goal(1000, trials=16))

    assert all(each["detector"].instances == 2 and each["preprocess"].instances == 2 for each in queues.asked)


def test_a_network_that_queues_with_single_rows_gets_a_delay_tried():
    queues = Queues(60, rows=1.0)

    search(setting(), queues, Goal(20, trials=16))

    assert any(each["detector"].max_delay_us == DELAY_US for each in queues.asked)


def test_a_delay_that_brings_no_company_is_tried_without():
    queues = Queues(1, rows=1.0)
    start = setting().changed("colour", max_delay_us=800)

    search(start, queues, Goal(20, trials=2))

    assert queues.asked[1] == start.changed("colour", max_delay_us=0)


@pytest.mark.parametrize(
    ("objects", "most", "batches"),
    [(5, 64, [8]), (20, 20, [8, 16, 20]), (300, 64, [8, 16, 32, 64]), (300, 8, [8]), (300, 1, [8]), (300, 12, [8, 12])],
)
def test_batches_grow_to_what_the_pictures_need_and_the_weights_allow(objects, most, batches):
    queues = Queues(10, objects=objects)

    search(setting(), queues, Goal(1, trials=6, most_batch={"colour": most}))

    assert list(dict.fromkeys(each["colour"].max_batch for each in queues.asked)) == batches


def test_what_cannot_be_served_is_passed_over():
    def measure(asked: Setting) -> Measured:
        if asked["detector"].instances > 1:
            return failure("cannot be served: out of memory")
        return Queues(60)(asked)

    tried = search(setting(), measure, Goal(60, trials=16))

    assert best(tried)["detector"].instances == 1
    assert all(each["detector"].instances <= 2 for each in tried)


def test_a_void_trial_says_nothing_about_smaller_settings():
    """One with three of everything is void; two of everything are enough, and one crop less is tried from there."""
    goal, queues = Goal(1000, trials=40), Queues(20)
    start = setting(**dict.fromkeys(SERVICE_MS, 2))
    larger = setting(**dict.fromkeys(SERVICE_MS, 3))
    died, slow = failure("void: a process has died"), replace(queues(larger), p99_ms=2000)

    def after(first: Measured) -> Setting | None:
        return next_setting({larger: first, start: queues(start)}, goal)

    assert after(slow) is None
    less = after(died)
    assert less is not None
    assert less.processes == start.processes - 1


def test_what_has_no_figures_is_never_the_best():
    """Not even beside a setting that answered no call at all."""
    slow = Measured(math.inf, 1.0, 100, {"crop": Did(1, 1, 900, 1, 1)}, 0.1)

    assert best({setting(): failure("void"), setting(crop=2): slow}) == setting(crop=2)


def test_the_frontier_is_what_nothing_as_small_is_faster_than():
    def measured(p99_ms: float) -> Measured:
        return Measured(p99_ms, 0.0, 100, {}, 0.0)

    tried = {
        setting(crop=2): measured(50),
        setting(label=2): measured(40),
        setting(): measured(90),
        setting(crop=3): measured(45),
        setting(crop=2, label=2, colour=2): measured(30),
    }

    assert frontier(tried) == [setting(), setting(label=2), setting(crop=2, label=2, colour=2)]


def test_there_is_an_end():
    goal = Goal(1e9, trials=1000)
    tried = search(setting(**dict.fromkeys(SERVICE_MS, 3)), Queues(1), goal)

    assert len(tried) < 20
    assert next_setting(tried, goal) is None
    assert chosen(tried, goal) == setting()
