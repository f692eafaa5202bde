"""The setting enable_x64: the table of docs/explanation/numbers.md, and that no cache mixes two of its values."""

import pathlib
import re
import warnings

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.types.widths import NARROWER, kept
from handlax.errors import StateTypeError

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "explanation" / "numbers.md"
MODES = (None, False, True)


def rows():
    """The expressions of the table, each with its dtype in the three modes."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if (len(cells) == 4 and cells[0].startswith(("`hx.", "`hnp."))) or cells[0].startswith("`x "):
            for expression in re.findall(r"`([^`]*)`", cells[0]):
                yield expression, tuple(cells[1:])


ROWS = list(rows())


def test_the_table_is_found():
    assert len(ROWS) > 20


@pytest.mark.parametrize(("expression", "cells"), ROWS, ids=[row[0] for row in ROWS])
def test_the_table(expression, cells):
    for mode, cell in [*zip(MODES, cells), *zip(MODES, cells)][::-1]:  # twice: caches are filled by the other modes
        dtype, _, warns = cell.partition(", ")
        with hx.enable_x64(mode), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = eval(expression, {"hx": hx, "hnp": hnp, "np": np, "x": hnp.ones(2, "float32")})
        found = value if isinstance(value, np.dtype) else value.dtype
        assert str(found) == dtype
        assert [w.category for w in caught][:1] == ([UserWarning] if warns else [])
        assert all(w.filename == "<string>" for w in caught)


def test_narrower_dtypes_are_half_as_wide():
    for wide, narrow in NARROWER.items():
        assert (wide.kind, wide.itemsize) == (narrow.kind, 2 * narrow.itemsize)
        assert kept(wide) is wide
        with hx.enable_x64(False):
            assert kept(wide) is narrow and kept(narrow) is narrow
    assert len(NARROWER) == 4


def doubled(x):
    return lax.fori_loop(0, 3, lambda i, c: c * np.array([1.0, 2.0]), x)


def test_a_loop_over_numpy_arrays_as_in_jax():
    for f in (doubled, hx.jit(doubled)):
        with pytest.raises(StateTypeError, match=r"f32\[2\] at the start and f64\[2\][\s\S]*jax_enable_x64', False"):
            f(hnp.ones(2))
        with hx.enable_x64(False):
            assert (f(hnp.ones(2)).dtype, f(hnp.ones(2)).tolist()) == (np.float32, [1, 8])
        with hx.enable_x64(True):
            assert f(hnp.ones(2)).dtype == np.float64


FUNCTIONS = {
    "argument": hnp.asarray,
    "constant": lambda x: hnp.asarray(x) + np.ones(2),
    "request": lambda x: hnp.asarray(x, "float64"),
    "carry": lambda x: lax.scan(lambda c, _: (c * np.ones(2), None), hnp.asarray(x), None, length=2)[0],
    "mean": lambda x: hnp.stack([hnp.mean(x), hnp.mean(x)]),
    "division": lambda x: hnp.asarray([1, 2]) / np.array([3, 4]),
}


@pytest.mark.filterwarnings("ignore:dtype. float64 was requested")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_cache_mixes_the_modes(name):
    f, x = FUNCTIONS[name], np.array([0.1, 0.2])
    transformed = (f, hx.jit(f), hx.jit(hx.vmap(f, axis_size=1, in_axes=None)), hx.jit(lambda x: hx.jvp(f, (x,), (x,))))
    exact = np.asarray(f(x))
    for g in transformed:
        for mode in (*MODES, *MODES[::-1], *MODES):
            with hx.enable_x64(mode):
                value, *_ = hx.tree.leaves(g(x))
            assert value.dtype == (np.float32 if mode is False else np.float64), mode
            np.testing.assert_allclose(value.reshape(2), exact, rtol=1e-7 if mode is False else 1e-16)
            assert (value.reshape(2) == exact).all() == (mode is not False)


@pytest.mark.parametrize("jitted", [False, True])
def test_numpy_arguments_are_not_changed(jitted):
    f = hx.jit(lambda x: x * 2) if jitted else lambda x: hnp.asarray(x) * 2
    x = np.arange(3)
    for mode in MODES:
        with hx.enable_x64(mode):
            for _ in range(3):
                assert f(x).dtype == (np.int32 if mode is False else np.int64)
    assert (x.dtype, x.tolist()) == (np.int64, [0, 1, 2])
    with hx.enable_x64(False):
        assert hnp.asarray(np.array([2**40 + 5])).tolist() == [5]


def test_the_setting_is_that_of_the_process_too():
    f = hx.jit(lambda x: x)
    try:
        for mode in (*MODES, *MODES):
            hx.config.update("jax_enable_x64", mode)
            assert f(np.ones(2)).dtype == (np.float32 if mode is False else np.float64)
            assert hnp.ones(2).dtype == (np.float64 if mode else np.float32)
    finally:
        hx.config.update("jax_enable_x64", None)
