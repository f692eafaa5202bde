"""Every program gives, under handlax, what was recorded with JAX."""

import functools

import numpy as np
import pytest

from .loading import PROGRAMS, RECORDING, disagreement, results

UNROLLED = {"edit_distance", "kalman_filter", "lotka_volterra", "recurrent", "wave"}
"""Programs with loops of Python around much: they take seconds to compile."""


@functools.cache
def recording() -> dict[str, np.ndarray]:
    with np.load(RECORDING) as stored:
        return dict(stored)


def wanted(name: str) -> dict[str, np.ndarray]:
    """The recorded results of one program."""
    return {key.split("/")[1]: value for key, value in recording().items() if key.startswith(f"{name}/")}


def test_every_recorded_program_has_a_file() -> None:
    assert {key.split("/")[0] for key in recording() if "/" in key} == set(PROGRAMS)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.sweep if name in UNROLLED else ()) for name in PROGRAMS])
def test_program_gives_what_jax_gives(name: str) -> None:
    expected = wanted(name)
    assert expected, f"{name} has no recording: run record.py"
    found, rtol = results(name)
    assert set(found) == set(expected)
    wrong = {key: disagreement(found[key], expected[key], rtol) for key in expected}
    assert not any(wrong.values()), {key: said for key, said in wrong.items() if said}
