"""What is derived from programs: shared by equal ones, and freed with a program that has a rule of the user."""

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.programs.program_cache import ProgramCache

CACHE = ProgramCache("derived in a test")


def with_rule(factor):
    @hx.custom_jvp
    def f(x):
        return hnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), factor * tangents[0]))
    return hx.make_program(f)(1.0)


def test_equal_programs_share_what_is_derived():
    programs = [hx.make_program(lambda x: x + 1)(1.0) for _ in range(2)]
    assert programs[0] is not programs[1]
    assert CACHE.get((programs[0], 2), object) is CACHE.get((programs[1], 2), object)
    assert CACHE.get((programs[0], 3), object) is not CACHE.get((programs[1], 2), object)
    CACHE.clear()


def test_what_has_a_rule_is_kept_by_its_program():
    one, other = with_rule(1.0), with_rule(2.0)
    body = lambda i, c: c + hx.checkpoint(hnp.sin)(c)
    loop = hx.make_program(lambda x: hx.lax.fori_loop(0, 3, body, x))(1.0)
    for program in (one, other, loop):
        assert CACHE.get((program, 1), object) is CACHE.get((program, 1), object)
        assert CACHE.get((program.ops[-1], 1), object) is CACHE.get((program.ops[-1], 1), object)
    assert CACHE.get((one, 1), object) is not CACHE.get((other, 1), object)
    assert len(CACHE) == 0
