"""Random programs with effects give what a plain interpreter says: see ``effect_oracle`` for what they mean.

Handlers of every kind and movement, recorded and in direct style, with effects performed in loops, branches, lanes,
compiled and checkpointed functions, derivatives and custom rules, nested up to five deep. A program may be refused only
for what ``effect_refusals`` lists, and only where it was written to be.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from random import Random

import pytest
from helpers.effect_modes import COMPILED, MODES, STYLES, Sample, evaluated, sample
from helpers.effect_refusals import messages
from helpers.once_differing import ENDED_ONCE, TWO_ORDERS

import handlax as hx
from handlax.testing import reduced
from handlax.testing.effect_programs.blocks import (
    ONCE,
    PLAIN,
    Block,
    RandomClause,
    RandomHandler,
    inner_blocks,
    simpler,
)
from handlax.testing.effect_programs.programs import effect_program
from handlax.testing.effect_programs.structures import random_block


@pytest.fixture(autouse=True)
def deep_stack():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)  # the oracle is made of generators within generators
    yield
    sys.setrecursionlimit(limit)


def outcome(sample):
    """``equal``, or ``refused``, as the program dares to be. Raises: AssertionError: it is neither."""
    written = sample.written()
    try:
        sample.check(written.program)
    except hx.errors.HandlaxError as error:
        refusal = error
    else:
        return "equal"
    if written.dares is None:
        raise refusal
    assert re.search(messages(written.dares), str(refusal)), f"{sample}: {refusal}"
    assert refusal.hint is not None, refusal
    return "refused"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_small_programs_mean_what_the_oracle_says(depth, style):
    with evaluated():
        for seed in range(20):
            assert outcome(Sample(1000 * depth + seed, depth, "directly", style)) == "equal"


@pytest.mark.parametrize("mode", MODES)
def test_transformed_programs_mean_what_the_oracle_says(mode):
    with evaluated():
        for seed in range(300, 312):
            assert outcome(Sample(seed, 3, mode, list(STYLES)[seed % 4], size=4)) == "equal"


@pytest.mark.parametrize("mode", COMPILED)
def test_compiled_programs_mean_what_the_oracle_says(mode):
    for seed in range(300, 303):
        assert outcome(Sample(seed, 2, mode, list(STYLES)[seed % 4], size=4)) == "equal"


def test_programs_that_dare_are_equal_or_refused_as_listed():
    samples = [Sample(seed, 4, "in_lanes", style, daring=0.3) for seed in range(40) for style in STYLES]
    with evaluated():
        found = [outcome(each) for each in samples if each.written().dares]
    assert found.count("refused") > 0


def test_a_program_that_fails_is_made_smaller():
    """Down to the statement that the failure needs, and the structures around it."""
    scans = lambda block: "scan" in [statement[0] for statement in statements_in(block)]
    program = next(filter(scans, (random_block(Random(seed), 4, size=12).program for seed in itertools.count())))
    small = reduced(effect_program(program), lambda each: scans(each.block)).block
    assert scans(small) and len([*statements_in(small)]) < len([*statements_in(program)])
    assert not any(map(scans, (each for each in simpler(small) if each != small)))


@pytest.mark.parametrize(
    ("program", "mode"), [(TWO_ORDERS, "checkpointed"), (ENDED_ONCE, "linearize")], ids=["two orders", "ended once"]
)
def test_a_program_that_once_differed_means_what_the_oracle_says(program, mode):
    with evaluated():
        Sample(0, 0, mode).check(program)


ASKS = Block((("perform", PLAIN, 3),), (4,))  # of the number that a loop adds to the others
STRUCTURES = {
    **{kind: (kind, 1, 3, ASKS) for kind in ("map", "fori", "python_loop", "vmap")},
    "scan": ("scan", 1, 3, False, Block((("perform", PLAIN, 3),), (5, 4))),
    "nested": ("vmap", 1, 2, Block((("map", 3, 4, Block((("perform", PLAIN, 4),) * 2, (6,))),), (4,))),
    "counted_while": ("counted_while", 1, 3, None, ASKS), "tested_while": ("tested_while", 1, 0.9, None, ASKS, ASKS),
    "switch": ("switch", 1, (Block((), (1,)), Block((("perform", PLAIN, 1),), (3,)), Block((), (2,)))),
}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_effects_are_tallied_through_loops_and_branches(structure):
    clauses, program = {PLAIN: RandomClause("fun", 0.5, 0.25)}, Block((STRUCTURES[structure],), (3,))
    for moves in ("tally", None):  # which counts, and passes the effect on; which answers it
        program = Block((("handle", RandomHandler(clauses, moves, moves and 0), program),), (3,))
    with evaluated():
        Sample(0, 0, "directly").check(program)


def test_what_is_performed_once_is_asked_for_what_all_lanes_share():
    programs = [random_block(Random(seed), 5, derivative=[None, "jvp"][seed % 2]).program for seed in range(300)]
    asked = [i for program in programs for kind, *fields in statements_in(program) if kind == "perform"
             for effect, i in [fields] if effect == ONCE]
    assert len(asked) > 100 and set(asked) == {0}


def statements_in(block):
    for statement in block.statements:
        yield statement
        for inner in inner_blocks(statement[1:]):
            yield from statements_in(inner)


COUNT = int(os.environ.get("HANDLAX_PROGRAMS", "20000"))


@pytest.mark.sweep  # 100,000 of them, half an hour: HANDLAX_PROGRAMS=100000 make sweep ARGS="-k all_programs"
@pytest.mark.parametrize("first", range(0, COUNT, 500))
def test_all_programs_mean_what_the_oracle_says(first):
    with evaluated():
        found = [outcome(sample(seed)) for seed in range(first, first + 500)]
    assert found.count("refused") <= 10


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(0, COUNT // 50, 20))
def test_all_compiled_programs_mean_what_the_oracle_says(first):
    for seed in range(first, first + 20):
        outcome(sample(seed, COMPILED))
