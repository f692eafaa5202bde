"""What is derived from programs: shared by equal ones, and freed with a program that has a rule of the user."""

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.caches import CACHES
from handlax.effects.programs.program_cache import ProgramCache


@pytest.fixture
def cache():
    made = ProgramCache("derived in a test")
    yield made
    CACHES.remove(made)


def with_rule(factor):
    @hx.custom_jvp
    def f(x):
        return hnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), factor * tangents[0]))
    return hx.make_program(f)(1.0)


def test_equal_programs_share_what_is_derived(cache):
    programs = [hx.make_program(lambda x: x + 1)(1.0) for _ in range(2)]
    assert programs[0] is not programs[1]
    assert cache.get((programs[0], 2), object) is cache.get((programs[1], 2), object)
    assert cache.get((programs[0], 3), object) is not cache.get((programs[1], 2), object)


def test_what_has_a_rule_is_kept_by_its_program(cache):
    one, other = with_rule(1.0), with_rule(2.0)
    body = lambda i, c: c + hx.checkpoint(hnp.sin, policy=lambda *_, **__: False)(c)
    loop = hx.make_program(lambda x: hx.lax.fori_loop(0, 3, body, x))(1.0)
    for program in (one, other, loop):
        assert cache.get((program, 1), object) is cache.get((program, 1), object)
        assert cache.get((program.ops[-1], 1), object) is cache.get((program.ops[-1], 1), object)
    assert cache.get((one, 1), object) is not cache.get((other, 1), object)
    assert len(cache) == 0
