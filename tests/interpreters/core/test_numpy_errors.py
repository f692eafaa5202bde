"""Infinities and NaNs are values, whatever of its own NumPy lets others use; a user's rule sees the user's context."""

import threading
import warnings
from contextvars import ContextVar

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.interpreters.core.numpy_errors import IN_CALLERS_CONTEXT, IN_OWN_CONTEXT

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
    x, found = hnp.zeros(50_000), []
    threads = [threading.Thread(target=lambda: found.append(float(hnp.log(x)[0]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [-np.inf] * 8


def test_a_rule_of_a_user_reads_the_users_context_variables_each_time(strict):
    op, x = PlusAsked(), np.ones(2, np.float32)
    for asked in (np.inf, 1.0, np.nan):
        token = ASKED.set(asked)
        found = hx.perform(op, x).tolist()
        assert found == [-np.inf] * 2 or ((asked == np.inf or np.isnan(asked)) and np.isnan(found).all())
        ASKED.reset(token)
