"""Choices that Hypothesis draws: of every kind, as often as they are to be, and the first where they may be any."""

from __future__ import annotations

from collections import Counter

from hypothesis import Phase, find, given, settings

from handlax.testing.generator.drawn_choices import written


def chosen(random):
    return [
        random.random() < 0.9, random.choice("abc"), random.randint(2, 9), random.choices("xyz", [1, 5, 5])[0],
        random.sample(range(4), 2)[0], random.getrandbits(32),
    ]


def test_choices_shrink_to_the_first_of_all():
    assert find(written(chosen), lambda found: True) == [False, "a", 2, "x", 0, 0]


def test_choices_are_as_frequent_as_their_weights():
    found = Counter()

    @settings(max_examples=400, phases=[Phase.generate], database=None)
    @given(written(lambda random: [random.choices("xy", [1, 7])[0], random.random() < 0.25, random.randint(0, 1)]))
    def count(values):
        found.update(enumerate(values))

    count()
    for value, share in (((0, "x"), 1 / 8), ((1, True), 1 / 4), ((2, 1), 1 / 2)):
        assert abs(found[value] / found.total() * 3 - share) < 0.12, value
