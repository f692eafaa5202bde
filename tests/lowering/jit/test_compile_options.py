"""Enumerations among the options of jit."""

import numpy as np
import pytest

import handlax as hx
from handlax.errors import BadArgument
from handlax.lowering.jit.compile_options import checked_options
from handlax.lowering.xla import executables


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


def test_the_value_of_an_option_is_a_number_or_a_text():
    given = {"a": True, "b": 2, "c": 0.5, "d": "x"}
    assert checked_options("jit", given | {"e": np.float32(0.5)}) == given | {"e": 0.5}
    for value in (None, [1], np.ones(2), 1j):
        with pytest.raises(BadArgument, match="a number or a string, got a="):
            checked_options("jit", {"a": value})


@pytest.mark.optimised
def test_most_optimisations_are_disabled_by_jaxs_setting_where_no_option_says_otherwise(monkeypatch):
    level, compile_and_load, seen = "xla_backend_optimization_level", executables.backend_compile_and_load, []

    def noting(backend, module, devices, options, *calls):
        seen.append(dict(options.env_option_overrides).get(level))
        return compile_and_load(backend, module, devices, options, *calls)

    monkeypatch.setattr(executables, "backend_compile_and_load", noting)
    f = lambda x: hx.numpy.tanh(x) * x + 0.1875
    values = [hx.jit(f)(2.0)]
    with hx.configure(disable_most_optimizations=True):
        values += [hx.jit(f)(2.0), hx.jit(f)(2.0), hx.jit(f, compiler_options={level: 1})(2.0)]
    values.append(hx.jit(f)(2.0))
    assert seen == [None, 0, 1]  # a program is compiled once for each
    assert max(values) - min(values) < 1e-6
