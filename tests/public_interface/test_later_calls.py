"""Eager functions are remembered as programs, and numbers as arrays: a later call equals the first in a new process.

Calls with other dtypes, numbers and settings come between them. ``clear_caches`` stands for the new process.
"""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.effects.base.later_layers import LaterLayers

from .scalar_cases import FLOATS, INTEGERS

VALUES = np.array([0.25, 0.5, 0.75, 1.5])
ARRAYS = {
    **{d: hnp.asarray(VALUES).astype(d) for d in ("float16", "bfloat16", "float32", "float64", "complex64")},
    **{d: hnp.asarray(4 * VALUES).astype(d) for d in ("bool", "uint8", "int32", "int64")},
    "weak": hnp.full(4, 0.5), "NumPy": VALUES, "list": VALUES.tolist(), "tuple": tuple(VALUES.tolist()),
    "large": hnp.linspace(0.1, 0.9, 10_000), "empty": hnp.zeros(0),
    "special": hnp.array([1e-40, 0.0, -0.0, np.nan, np.inf, -1e38, 3e38], "float32"),
}
NUMBERS = [
    0.5, 1, True, np.float32(0.5), np.float64(0.5), hnp.array(0.5), hnp.array(0.5, "float64"), -0.0, 0.0, 0, 2.0, 2,
    float("nan"), 1j, np.int8(1), np.bool_(True), 10**12, 300, -1,
]
SETTINGS = [
    {}, {"default_float": "float64"}, {"default_int": "int64"}, {"enable_x64": True}, {"enable_x64": False},
    {"numpy_dtype_promotion": "strict"}, {"numpy_rank_promotion": "raise"}, {"default_matmul_precision": "bfloat16"},
    {"debug_nans": True}, {"default_prng_impl": "philox4x32"}, "errors of NumPy", "width of NumPy's printing",
]
SCOPES = {"errors of NumPy": lambda: np.errstate(all="raise"), "width of NumPy's printing": np.printoptions}
ALONE = [
    *[getattr(hnp.linalg, name) for name in ("norm", "det", "inv", "svdvals")],
    *[getattr(nn, name) for name in ("relu", "gelu", "softmax", "silu")],
    *[getattr(hnp, name) for name in ("mean", "var", "sort", "cumsum", "angle", "nan_to_num", "ptp", "unwrap")],
]
CASES = {**FLOATS, **INTEGERS, **{f.__name__: lambda x, s, f=f: f(x) for f in ALONE}}


def called(f, x, s, setting):
    """The results of a call as arrays with their types, or the class of its error."""
    scope = SCOPES.get(setting, nullcontext)() if isinstance(setting, str) else hx.configure(**setting)
    try:
        with scope:
            leaves, tree = hx.tree.flatten(f(x, s))
    except Exception as error:
        return type(error), str(error).partition("\n")[0]
    data = [random.key_data(y) if str(getattr(y, "dtype", "")).startswith("key") else y for y in leaves]
    return str(tree), [(str(getattr(y, "type", type(y))), np.asarray(d)) for y, d in zip(leaves, data)]


def same(first, later):
    """Within the rounding of what XLA computes later, NaN and signs of zeros included."""
    if first[0] != later[0] or isinstance(first[1], str):
        return first == later
    for (kind, x), (other, y) in zip(first[1], later[1]):
        if kind != other or x.shape != y.shape:
            return False
        if x.dtype.kind in "OUS":
            continue
        wide = np.complex128
        eps = float(hnp.finfo(x.dtype).eps) if x.dtype.kind in "fcV" else 0.0
        if not np.allclose(x.astype(wide), y.astype(wide), rtol=32 * eps, atol=eps / 64, equal_nan=True):
            return False
        if x.dtype.kind == "f" and not np.array_equal(np.signbit(x) & (x == 0), np.signbit(y) & (y == 0)):
            return False
    return True


def check(name, seed, count, rounds):
    rng = np.random.default_rng([seed, *map(ord, name)])
    pick = lambda xs, n: [xs[i] for i in rng.choice(len(xs), n, replace=False)]
    calls = list(product(pick([*ARRAYS], 4), pick(NUMBERS, 4), [{}, *pick(SETTINGS[1:], 3)]))
    calls = pick(calls, count)
    first = []
    for x, s, setting in calls:
        hx.clear_caches()
        first.append(called(CASES[name], ARRAYS[x], s, setting))
    hx.clear_caches()
    for i in np.concatenate([rng.permutation(count) for _ in range(rounds)]):
        x, s, setting = calls[i]
        later = called(CASES[name], ARRAYS[x], s, setting)
        assert same(first[i], later), (x, s, setting, first[i], later)


@pytest.mark.parametrize("name", [*CASES][::40])
@pytest.mark.filterwarnings("ignore")
def test_a_later_call_equals_the_first(name):
    check(name, 0, 6, 3)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_later_calls_equal_the_first(name):
    check(name, 1, 16, 4)


def test_numbers_that_wrap_around_in_one_setting_overflow_in_another():
    x = hnp.array([1, 2, 3], "uint8")
    with hx.configure(default_int="int64"):
        np.testing.assert_array_equal(x * (10**12 + 1), [1, 2, 3])
    with pytest.raises(hx.errors.IntegerOverflow, match="an integer must fit its dtype"):
        x * (10**12 + 1)


def planned(monkeypatch, f, *args):
    """The operations whose execution is planned anew by one more call of a function that was called before."""
    for _ in range(4):
        f(*args)
    found, plan = [], LaterLayers.plan
    with monkeypatch.context() as patch:
        patch.setattr(LaterLayers, "plan", staticmethod(lambda program: (found.extend(program.ops), plan(program))[1]))
        f(*args)
    return {op.name for op in found if not op.bodied}


@pytest.mark.parametrize("cases", [FLOATS, INTEGERS])
@pytest.mark.filterwarnings("ignore")
def test_a_later_call_plans_nothing(cases, monkeypatch):
    """Also operations that every call makes anew are planned once, so that those worth it are compiled in time."""
    x, s = hnp.asarray(VALUES), 1 if cases is INTEGERS else 0.5
    x = hnp.asarray(4 * VALUES).astype("int64") if cases is INTEGERS else x.astype("float64")
    found = {name: ops for name, f in cases.items() if (ops := planned(monkeypatch, f, x, s))}
    assert not found


@pytest.mark.parametrize("f", [
    lambda x: lax.slice(x, (1,), (3,)), lambda x: lax.bitcast_convert_type(x, "int32"), lambda x: x[1:3],
    lambda x: hnp.pad(x, 1, mode="reflect"), lambda x: hnp.insert(x, 1, 0.5), lambda x: hnp.bincount(x.astype(int)),
    lambda x: random.normal(random.key(0), (1000,)), lambda x: random.bits(random.key(0), (9,)),
])
def test_a_later_call_of_what_is_made_anew_plans_nothing(f, monkeypatch):
    assert not planned(monkeypatch, f, hnp.asarray(VALUES).astype("float32"))
