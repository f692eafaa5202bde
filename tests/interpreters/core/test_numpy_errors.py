"""Infinities and NaNs are values, whatever of its own NumPy lets others use; a user's rule sees the user's context."""

import signal
import sys
import warnings
from contextvars import ContextVar

import ml_dtypes
import numpy as np
import pytest
from helpers.other_threads import together

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.core.columns import EVALUATE
from handlax.effects.operations.elementwise.arithmetic import Sign
from handlax.effects.operations.elementwise.comparison import Max, Min, SelectN
from handlax.effects.operations.reductions.reductions import ReduceMax, ReduceMin
from handlax.interpreters.core.evaluate import _function
from handlax.interpreters.core.numpy_errors import IN_ANY_CONTEXT, IN_CALLERS_CONTEXT, IN_OWN_CONTEXT, context_for

ASKED = ContextVar("asked", default=0)


@hx.operation
class PlusAsked:
    def result_type(op, x):
        return x

    def evaluate(op, x):
        return np.log(x * 0) + ASKED.get()


@pytest.fixture
def strict():
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        before = np.geterr()
        yield
        assert np.geterr() == before


@pytest.mark.parametrize("context", [IN_OWN_CONTEXT, IN_CALLERS_CONTEXT])
def test_a_function_divides_by_zero_and_the_setting_of_the_caller_stays(context, strict):
    assert context.run(np.divide, np.float32(1), np.float32(0)) == np.inf
    with pytest.raises(FloatingPointError):
        np.divide(np.float32(1), np.float32(0))


def test_operations_and_their_derivatives_divide_by_zero(strict):
    x = hnp.array([0.0, -1.0])
    for _ in range(3):
        assert (float(hnp.log(x)[0]), float((x / 0.0)[1])) == (-np.inf, -np.inf)
        assert np.isnan(hx.jvp(hnp.log, (x,), (x,))[1][0])
        assert float(hnp.var(x * np.inf)) != 0


def test_threads_evaluate_at_the_same_time(strict):
    x = hnp.zeros(50_000)
    assert together(8, lambda _: float(hnp.log(x)[0])) == [-np.inf] * 8


def test_a_rule_of_a_user_reads_the_users_context_variables_each_time(strict):
    op, x = PlusAsked(), np.ones(2, np.float32)
    for asked in (np.inf, 1.0, np.nan):
        token = ASKED.set(asked)
        found = hx.perform(op, x).tolist()
        assert found == [-np.inf] * 2 or ((asked == np.inf or np.isnan(asked)) and np.isnan(found).all())
        ASKED.reset(token)


class Finalized:
    """An object that does its work when it is deleted."""

    def __init__(self, work):
        self.work = work

    def __del__(self):
        self.work()


def raised(work):
    before = signal.signal(signal.SIGUSR1, lambda *_: work())
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


A, B = np.array([3.0, -0.0, np.inf], np.float32), np.array([1.0, 0.0, 2.0], np.float32)
CALLS = {
    "ufuncs": lambda a, b: (hnp.log(a), a + b, a / b),
    "rules in Python": lambda a, b: (hnp.maximum(a, b), hnp.where(a > b, a, b), a**b, hnp.sort(a), a @ b),
    "reductions and views": lambda a, b: (hnp.sum(a), hnp.max(a), hnp.reshape(a, (3, 1)), a[::-1]),
    "programs of ufuncs": lambda a, b: (hnp.clip(a, b, b), hnp.mean(b)),
    "other programs": lambda a, b: (hnp.hypot(a, b), hnp.var(b), hnp.diff(a), hnp.stack([a, b])),
}


@pytest.mark.parametrize("how", [lambda work: work(), Finalized, raised], ids=["call", "finalizer", "signal"])
@pytest.mark.parametrize("call", CALLS)
def test_operations_may_be_performed_wherever_python_runs_during_others(call, how, strict):
    a, b = hnp.asarray(A), hnp.asarray(B)
    first, *_ = [CALLS[call](a, b) for _ in range(3)]
    seen, failed = set(), []

    def work():
        try:
            y = hnp.maximum(hnp.log(a), hnp.hypot(a, b)) + hnp.zeros(3)
            seen.add((ASKED.get(), str(y.dtype), *y.tolist()))
        except Exception as error:  # nobody sees those of finalizers
            failed.append(error)

    token = ASKED.set(7)
    with hx.configure(default_float="float64"):
        CALLS[call](a, b), CALLS[call](a, b), work(), work(), work()
        sys.setprofile(lambda *_: how(work) and None)
        try:
            found = CALLS[call](a, b)
        finally:
            sys.setprofile(None)
    ASKED.reset(token)
    assert not failed
    assert seen == {(7, "float64", np.hypot(A, B)[0].item(), 0.0, np.inf)}
    for y, z in zip(found, first):
        np.testing.assert_array_equal(np.asarray(y), np.asarray(z))


def every_float(dtype):
    """Each pair of zeros, numbers, infinities and NaN, signalling ones too, in vectors and what is left of them."""
    with np.errstate(all="ignore"):
        numbers = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-45, 6e4]).astype(dtype)
    bits = {2: 0x7C01 if dtype == np.float16 else 0x7F81, 4: 0x7F800001, 8: 0x7FF0000000000001}[numbers.itemsize]
    numbers = np.append(numbers, np.array([bits], f"u{numbers.itemsize}").view(dtype))
    return [np.tile(x, 7)[:-3] for x in (np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers)))]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("op", [Max(), Min(), SelectN(), Sign(), ReduceMax((0,)), ReduceMin((0,))])
def test_what_is_declared_silent_reports_no_error(op, dtype, strict):
    operands = every_float(dtype)[: getattr(op, "arity", 1)]
    if isinstance(op, SelectN):
        operands = [np.arange(operands[0].size) % 3 == 0, *every_float(dtype)]
    types = [hx.typeof(x) for x in operands]
    f = _function(EVALUATE.find(type(op)), op, types)
    context = context_for(type(op), f, types)
    assert (context is IN_ANY_CONTEXT) == (dtype is not ml_dtypes.bfloat16)
    assert context.run(f, *operands).dtype == dtype


def test_threads_evaluate_large_arrays_at_once_each_in_its_own_context():
    x = hnp.ones(300_000)  # NumPy releases the lock meanwhile

    def work(_):
        for _ in range(30):
            hnp.exp(x)

    together(4, work)
