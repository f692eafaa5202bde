"""Every law of control flow and transformations, over generated functions in which they are nested."""

from __future__ import annotations

from types import FunctionType
from unittest import mock

import numpy as np
import pytest
from helpers.failing_laws import failing, under
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.core.arrays import as_array
from handlax.effects.operations.elementwise.arithmetic import Rem
from handlax.effects.programs.program import interpret
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.interpreters.batching.batch import Batch
from handlax.interpreters.core.record import record
from handlax.operations import Sin
from handlax.testing import NEST_LAWS, Law, LawFails, Nest, check_nest_law, nest_laws, programs, random_program, reduced
from handlax.testing.closeness import assert_results_equal
from handlax.testing.generator.control import CONTROL
from handlax.testing.generator.control_flow import NODES
from handlax.testing.generator.unrolled import UNROLLED
from handlax.testing.nest_laws import FORWARD, REVERSE, changes_of, chosen_by_lane, forwards, pushed, tower

# How many parts of the examples a law has that takes longer than others.
SHARES = {"compiled": 1 / 3, "forward towers": 2 / 3, "reverse towers": 2 / 3}


@pytest.mark.parametrize("examples", [12, pytest.param(300, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("law", NEST_LAWS, ids=lambda law: law.name)
def test_law_of_nests(law, examples):
    # a failing nest is reduced by ``check_nest_law``, which knows its text
    @settings(max_examples=int(examples * SHARES.get(law.name, 1)), phases=(Phase.explicit, Phase.generate))
    @given(programs(reverse="reverse" in law.needs, without=law.without), st.integers(0, 99))
    def holds(nest, seed):
        reason = check_nest_law(law, nest, seed)
        assert reason is None or (law.name == "differences" and "no result has" in reason)

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


@pytest.mark.parametrize("examples", [8, pytest.param(200, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("changes", [FORWARD, REVERSE], ids=["forward", "reverse"])
def test_cached_rule_programs_give_what_rules_give(changes, examples, evaluated_in_float64):
    @settings(max_examples=examples, phases=(Phase.explicit, Phase.generate))
    @given(programs(reverse=changes is REVERSE), st.integers(0, 99))
    def holds(nest, seed):
        f, inputs = tower(CONTROL, nest, changes_of(seed, changes)), [as_array(x) for x in nest.inputs(seed)]
        found = f(*inputs)
        with hx.rules(jvp={Rem: hx.columns.JVP.find(Rem)}):  # rules are not cached in a scope with rules of its own
            wanted = f(*inputs)
        assert [y.aval for y in found] == [y.aval for y in wanted]
        assert_results_equal(found, wanted, what="formulas, against rules")
        typecheck(record(lambda *xs: list(f(*xs)), [x.aval for x in inputs]))

    holds()
    assert hx.cache_info()["rule_programs"].size


# For each law a mistake for which it fails alone: a word of ``CONTROL`` that means something else, a wrong rule, or
# another program in place of the one that the law is about.


def word(name, change):
    """The word means ``change(word, *args)``."""
    was = getattr(CONTROL, name)
    return mock.patch.object(CONTROL, name, lambda *args: change(was, *args))


def doubled(ys):
    return hx.tree.map(lambda y: 2 * y, ys)


def doubled_map(t, f, *xs):
    """Of what gives results and a linear map, the map."""
    y, linear = t(f, *xs)
    return y, lambda *ts: doubled(linear(*ts))


def mapped_along(axes):
    """The results of nests that are mapped along these axes."""
    wrong = lambda vmap, f, own: lambda *xs: doubled(vmap(f, own)(*xs))
    is_wrong = lambda f, own: own == axes and type(f) is FunctionType
    return word("vmap", lambda vmap, *args: (wrong if is_wrong(*args) else apply)(vmap, *args))


def apply(f, *args):
    return f(*args)


def slightly(jvp, f, xs, dxs):
    """In the last digits, where it is evaluated in the direction of the laws of ``jvp``."""
    y, dy = jvp(f, xs, dxs)
    return y, dy if under(object) or np.any(dxs[2] != np.ones((2, 3))) else [each * (1 + 1e-8) for each in dy]


def in_lanes(wrong):
    return lambda t, *args: (wrong if under(Batch) else apply)(t, *args)


def not_in_lanes(wrong):
    return lambda t, *args: (apply if under(Batch) else wrong)(t, *args)


def another(name):
    """A function of programs gets one whose results are doubled."""
    was = getattr(nest_laws, name)
    twice = lambda program: record(lambda *xs: doubled(interpret(program, xs)), program.in_types)
    return mock.patch.object(nest_laws, name, lambda program, *args: was(twice(program), *args))


def namesake():
    """The identity, an operation whose name is another one's, too."""
    own = {
        "result_type": lambda op, x: x, "evaluate": lambda op, x: x, "decompose": lambda op, x: x,
        "batch": lambda op, dims, x: (hx.perform(op, x), dims[0]), "jvp": hx.columns.linear,
        "transpose": lambda op, ct, x: hx.perform(op, ct),
    }
    first, _ = [hx.operation(type("NestNamesake", (), own))() for _ in range(2)]
    return first


WRONG = {
    "value": lambda: word("cond", lambda cond, *args: [y + (not under(object)) for y in cond(*args)]),
    "compiled": lambda: word("jit", lambda jit, f: lambda *xs: doubled(jit(f)(*xs))),
    "differences": lambda: hx.rules(jvp={Sin: lambda op, xs, dxs: (hx.perform(op, *xs), dxs[0])}),
    "jvp": lambda: word("jvp", slightly),
    "linearize": lambda: word("linearize", not_in_lanes(doubled_map)),
    "adjoint": lambda: word("vjp", doubled_map),
    "grad": lambda: word("grad", lambda grad, *args: lambda *xs: doubled(grad(*args)(*xs))),
    "transpose": lambda: word("linear_transpose", lambda t, *args: lambda ct: doubled(t(*args)(ct))),
    "vmap": lambda: mapped_along((0, 1, 1, 0, 0)),
    "choices": lambda: mapped_along((None, None, None, 0, 0)),
    "forward towers": lambda: word("jvp", in_lanes(lambda jvp, *args: doubled(jvp(*args)))),
    "reverse towers": lambda: word("linearize", in_lanes(doubled_map)),
    "partial_eval": lambda: another("partial_eval_program"),
    "text": lambda: word("scan", lambda scan, *args: hx.tree.map(lambda y: hx.perform(namesake(), y), scan(*args))),
    "dead_code": lambda: another("dead_code_elimination"),
}
NEST = Nest("""def program(x, v, w, k, p):
    (n,) = hx.cond(p, lambda n: (n + 1,), lambda n: (n,), k)
    z, ys = hx.scan(lambda c, y: (hnp.sin(c) + y, c), x, v)
    return (z, ys, w, n)
""")
SEED = 35  # of towers over lanes


def test_each_law_has_a_mistake_for_which_it_fails():
    assert [*WRONG] == [law.name for law in NEST_LAWS]
    assert changes_of(SEED, FORWARD) == [forwards, chosen_by_lane]
    assert changes_of(SEED, REVERSE) == [pushed, chosen_by_lane]


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_by_its_law_alone(name):
    with WRONG[name]():
        assert failing(NEST_LAWS, (NEST, SEED), lacks={}) == [name]


def test_a_rule_whose_result_is_another_is_found():
    """Though its derivative is right."""
    with hx.rules(jvp={Sin: lambda op, xs, dxs: (2 * hx.perform(op, *xs), hnp.cos(xs[0]) * dxs[0])}):
        assert failing(NEST_LAWS, (NEST, SEED), lacks={}) == ["differences"]


def test_generated_nests_have_every_kind_of_node_and_are_deep():
    texts = [random_program(seed).source for seed in range(200)]
    for name in NODES:
        assert sum(f"hx.{name}(" in text for text in texts) > 10, name
    assert max(len(line) - len(line.lstrip()) for text in texts for line in text.splitlines()) >= 16


def test_every_word_has_both_meanings():
    assert {*NODES} < {*vars(CONTROL)} == {*vars(UNROLLED)}


def test_the_same_seed_gives_the_same_nest():
    assert random_program(7) == random_program(7) != random_program(8)


def test_a_law_that_fails_is_reported_with_a_small_nest():
    def refuse(nest, seed):
        if "hx.scan(" in nest.source:
            raise AssertionError("a loop")

    law = Law("no loops", "there are no loops", refuse)
    nest = next(nest for nest in map(random_program, range(99)) if nest.source.count("hx.scan(") == 2)
    with pytest.raises(AssertionError, match="there are no loops") as caught:
        check_nest_law(law, nest, 3, seconds=100.0)
    assert len(str(caught.value)) < 500


def looping(test, body, init, **options):
    """A loop of an iteration too few."""
    carry = last = init
    while test(carry):
        last, carry = carry, body(carry)
    return last


COUNTED = """
def program(x, v, w, k, p):
    def g1(c1):
        (i1, f1) = c1
        return (i1 < 3)
    def g2(c2):
        (i2, f2) = c2
        return (i2 + 1, hnp.sin(f2))
    (i3, f3) = hx.while_loop(g1, g2, (0, x))
    return (f3,)
"""


def test_a_nest_is_reduced_to_programs_that_end():
    def check(nest, seed):
        assert_results_equal(nest.by(UNROLLED, while_loop=looping)(*nest.inputs(seed)), nest(*nest.inputs(seed)))

    with pytest.raises(LawFails, match=r"(?s)def program.*hx.while_loop"):
        check_nest_law(Law("loops", "loops are loops", check), Nest(COUNTED), 0, seconds=5.0)


def test_a_law_that_does_not_apply_to_a_nest_says_why():
    laws = {law.name: law for law in NEST_LAWS}
    custom = "def program(x, v, w, k, p):\n    g = hx.custom_jvp(hnp.sin)\n    return (g(x),)\n"
    assert check_nest_law(laws["text"], Nest(custom), 0) == "the nest has custom_jvp"
    reason = check_nest_law(laws["grad"], Nest(COUNTED), 0)
    assert reason is not None and "while_loop" in reason


def test_a_reduced_nest_still_fails_and_nothing_of_it_can_go():
    nest = random_program(5)
    fails = lambda nest: "hnp." in nest.source
    small = reduced(nest, fails)
    assert fails(small) and len(small.source.split()) < 15
    assert reduced(small, fails) == small
    assert isinstance(small, Nest)
