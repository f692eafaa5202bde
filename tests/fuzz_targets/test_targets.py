"""What fuzzing has found and what it has reached, once more, for every target of the package."""

from pathlib import Path
from random import Random

import pytest

import fuzz_targets
from handlax.testing.fuzzing import check_input, damaged, read_corpus

# An input compiles programs, which on a busy machine takes longer than the targets allow.
TARGETS = {name: target._replace(seconds=120.0) for name, target in fuzz_targets.TARGETS.items()}
CORPORA = Path(__file__).parents[1] / "corpora"


def test_every_corpus_has_its_target():
    assert {folder.name for folder in CORPORA.iterdir()} <= {*TARGETS}


@pytest.mark.parametrize("name", TARGETS)
def test_the_law_of_fuzzing_holds_of_the_corpus(name):
    for data in read_corpus(CORPORA / name):
        check_input(TARGETS[name], data)


@pytest.mark.parametrize("name", ["parser", "artifact", "entry", "notation", "safetensors"])
def test_seeds_are_accepted(name):
    assert "a result" in {check_input(TARGETS[name], data) for data in TARGETS[name].seeds()}


@pytest.mark.parametrize("count", [40, pytest.param(3000, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", TARGETS)
def test_the_law_of_fuzzing_holds_of_damaged_inputs(name, count):
    target, rng = TARGETS[name], Random(0)
    pool = [*target.seeds(), *read_corpus(CORPORA / name)]
    for _ in range(count):
        check_input(target, damaged(rng.choice(pool), rng, pool, target.words))
