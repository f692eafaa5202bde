"""Enumerations among the options of jit."""

import pytest

import handlax as hx
from handlax.errors import BadArgument


@pytest.mark.parametrize("inline", [*hx.Inline, True, False])
def test_a_call_becomes_part_of_its_caller_where_it_is_asked(inline):
    program = hx.make_program(hx.jit(lambda x: x * 2, inline=inline))(3.0)
    assert ("call" in str(program)) == (inline not in (hx.Inline.JAX_EARLY, True))


@pytest.mark.parametrize("level", hx.CompilerEffortLevel)
def test_every_effort_compiles(level):
    options = {"optimization_level": level, "memory_fitting_level": level}
    assert float(hx.jit(lambda x: hx.numpy.sqrt(x * x) + 1, compiler_options=options)(3.0)) == 4.0


@pytest.mark.parametrize("name", ["split_repeat", "splits_repeats", "split_repeatss"])
def test_a_misspelt_option_of_ours_is_named(name):
    with pytest.raises(BadArgument, match=f"one of XLA's or split_repeats, got '{name}'"):
        hx.jit(abs, compiler_options={name: False})(1.0)
