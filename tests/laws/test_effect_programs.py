"""Random programs with effects give what a plain interpreter says: see ``effect_oracle`` for what they mean.

Handlers of every kind and movement, with effects performed in loops, branches, lanes, compiled and checkpointed
functions, derivatives and custom rules, nested up to four deep.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.effect_oracle import meaning, slope
from helpers.effect_programs import function, random_program

import handlax as hx
from handlax import numpy as hnp
from handlax.sharding import P

XS = [0.7, -0.3, 1.1]
Y = -0.4


def array(x):
    return hnp.asarray(x, "float64")


def directly(f, c):
    return f(array(c), array(XS[0]), array(Y))


def compiled(f, c):
    return directly(hx.jit(f), c)


def in_lanes(f, c):
    return hx.vmap(f, (None, 0, None))(array(c), array(XS), array(Y))


def compiled_in_lanes(f, c):
    return in_lanes(hx.jit(f), c)


def on_devices(f, c):
    return _on_devices(f, c, True)


def on_unchecked_devices(f, c):
    return _on_devices(f, c, False)


def _on_devices(f, c, checked):
    mesh = hx.make_mesh((len(XS),), ("device",))
    each = lambda c, x, y: f(c, x[0], y)[None]
    over = hx.shard_map(
        each, mesh=mesh, in_specs=(P(), P("device"), P()), out_specs=P("device"), check_vma=checked
    )
    return over(array(c), array(XS), array(Y))


def derivative(f, c):
    return hnp.stack(hx.jvp(lambda x: f(array(c), x, array(Y)), (array(XS[0]),), (array(1.0),)))


MODES = {
    directly: lambda program, c: meaning(program, c, XS[0], Y),
    compiled: lambda program, c: meaning(program, c, XS[0], Y),
    in_lanes: lambda program, c: [meaning(program, c, x, Y) for x in XS],
    compiled_in_lanes: lambda program, c: [meaning(program, c, x, Y) for x in XS],
    on_devices: lambda program, c: [meaning(program, c, x, Y) for x in XS],
    on_unchecked_devices: lambda program, c: [meaning(program, c, x, Y) for x in XS],
    derivative: lambda program, c: slope(program, c, XS[0], Y),
}


def check(seed, depth, modes):
    program, choice = random_program(seed, depth), float(seed % 2)
    for mode in modes:
        expected, found = MODES[mode](program, choice), mode(function(program), choice)
        message = f"program {seed} of depth {depth}, {mode.__name__}"
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-9, err_msg=message)


@pytest.mark.parametrize("first", range(0, 240, 24))
def test_small_programs_mean_what_the_oracle_says(first):
    for seed in range(first, first + 24):
        check(seed, 1 + (seed % 6 == 0), [directly])


@pytest.mark.parametrize("mode", list(MODES)[1:], ids=lambda mode: mode.__name__)
def test_transformed_programs_mean_what_the_oracle_says(mode):
    for seed in range(300, 306):
        check(seed, 2, [mode])


class DirectStyle:
    """handlax, with every handler in direct style."""

    handle = staticmethod(hx.direct)

    def __getattr__(self, name):
        return getattr(hx, name)


def refused_in_direct_style(monkeypatch, seeds):
    """Check programs in direct style; the number of those in which a loop, lanes or a branch is refused."""
    monkeypatch.setattr("helpers.effect_programs.hx", DirectStyle())
    refused = 0
    for seed in seeds:
        try:
            check(seed, 1 + seed % 3, [directly])
        except hx.errors.CannotCross as error:
            if "in direct style takes the rest" not in str(error):
                raise
            refused += 1
    return refused


def test_programs_in_direct_style_mean_what_the_oracle_says_or_are_refused(monkeypatch):
    assert refused_in_direct_style(monkeypatch, range(400, 450)) < 25


@pytest.mark.sweep
def test_thousands_of_programs_in_direct_style_mean_what_the_oracle_says_or_are_refused(monkeypatch):
    assert refused_in_direct_style(monkeypatch, range(20000, 22000)) < 1000


@pytest.mark.sweep  # a thousand of them, two minutes: make sweep ARGS="-k thousand_3_"
@pytest.mark.parametrize("first", range(1000, 11000, 50), ids=lambda first: f"thousand_{first // 1000}_from_{first}")
def test_programs_of_all_depths_mean_what_the_oracle_says(first):
    transformed = list(MODES)[1:]
    for seed in range(first, first + 50):
        mode = transformed[seed // 5 % len(transformed)]
        check(seed, 1 + seed % 4, [directly, mode] if seed % 5 == 0 else [directly])
