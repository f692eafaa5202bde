"""Every law of control flow and transformations, over generated functions in which they are nested."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax.effects.core.arrays import as_array
from handlax.effects.operations.elementwise.arithmetic import Rem
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.interpreters.core.record import record
from handlax.testing import NEST_LAWS, Law, Nest, check_nest_law, programs, random_program, reduced
from handlax.testing.closeness import assert_trees_close
from handlax.testing.generator.control import CONTROL
from handlax.testing.generator.control_flow import NODES
from handlax.testing.nest_laws import FORWARD, REVERSE, changes_of, tower

COMPILED = 20  # examples of a law that compiles every one
EXAMPLES = {"compiled": COMPILED, "forward towers": 2 * COMPILED, "reverse towers": 2 * COMPILED}


@pytest.mark.parametrize("law", NEST_LAWS, ids=lambda law: law.name)
def test_law_of_nests(law):
    # a failing nest is reduced by ``check_nest_law``, which knows its text
    @settings(max_examples=EXAMPLES.get(law.name, 60), phases=(Phase.explicit, Phase.generate))
    @given(programs(reverse="reverse" in law.needs, without=law.without), st.integers(0, 99))
    def holds(nest, seed):
        check_nest_law(law, nest, seed)

    holds()


@pytest.fixture
def evaluated_in_float64():
    """Settings of the process, under which rules are cached; in a scope of settings, as above, they are not."""
    changes = {"default_float": "float64", "disable_jit": True}
    before = {name: getattr(hx.config, name) for name in changes}
    try:
        for name, value in changes.items():
            hx.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            hx.config.update(name, value)


@pytest.mark.parametrize("changes", [FORWARD, REVERSE], ids=["forward", "reverse"])
def test_cached_rule_programs_give_what_rules_give(changes, evaluated_in_float64):
    @settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
    @given(programs(reverse=changes is REVERSE), st.integers(0, 99))
    def holds(nest, seed):
        f, inputs = tower(CONTROL, nest, changes_of(seed, changes)), [as_array(x) for x in nest.inputs(seed)]
        found = f(*inputs)
        with hx.rules(jvp={Rem: hx.columns.JVP.find(Rem)}):  # rules are not cached in a scope with rules of its own
            wanted = f(*inputs)
        assert [y.aval for y in found] == [y.aval for y in wanted]
        assert_trees_close(found, wanted, what="formulas, against rules")
        typecheck(record(lambda *xs: list(f(*xs)), [x.aval for x in inputs]))

    holds()
    assert hx.cache_info()["rule_programs"].size


def test_generated_nests_have_every_kind_of_node_and_are_deep():
    texts = [random_program(seed).source for seed in range(200)]
    for name in NODES:
        assert sum(f"hx.{name}(" in text for text in texts) > 10, name
    assert max(len(line) - len(line.lstrip()) for text in texts for line in text.splitlines()) >= 16


def test_the_same_seed_gives_the_same_nest():
    assert random_program(7) == random_program(7) != random_program(8)


def test_a_law_that_fails_is_reported_with_a_small_nest():
    def refuse(nest, seed):
        assert "hx.scan(" not in nest.source

    law = Law("no loops", "there are no loops", refuse)
    nest = next(nest for nest in map(random_program, range(99)) if nest.source.count("hx.scan(") == 2)
    with pytest.raises(AssertionError, match="there are no loops") as caught:
        check_nest_law(law, nest, 3)
    assert len(str(caught.value)) < 500


def test_a_reduced_nest_still_fails_and_nothing_of_it_can_go():
    nest = random_program(5)
    fails = lambda nest: "hnp." in nest.source
    small = reduced(nest, fails)
    assert fails(small) and len(small.source) < 80
    assert reduced(small, fails) == small
    assert isinstance(small, Nest)
