"""Parameters that are whole numbers, of all public functions: another number is refused by an error of the package.

It names the function, and is a TypeError, as NumPy's and JAX's are.
"""

import inspect
import itertools

import numpy as np
import pytest

import handlax as hx
from handlax.effects.base.errors import whole_number
from handlax.errors import HandlaxError, NotAnInteger

MODULES = (
    hx.numpy, hx.numpy.linalg, hx.numpy.fft, hx.lax, hx.lax.linalg, hx.nn, hx.random, hx.ops, hx.scipy.special,
    hx.scipy.linalg, hx.scipy.signal, hx.scipy.fft, hx.scipy.stats, hx.experimental.sparse,
)
RAW = ("integer", "__index__", "non-int")  # what Python and NumPy say of a number that is no integer
OTHERS = {"M", "precision"}  # of window functions, floats as JAX's; of texts, which NumPy writes


def parameters(module):
    """Each public function of a module, and each of its parameters that is an ``int``."""
    for name in sorted({*dir(module)} & {*getattr(module, "__all__", dir(module))}):
        function = getattr(module, name)
        if name[0] != "_" and inspect.isfunction(function):
            for parameter in inspect.signature(function).parameters.values():
                if parameter.annotation in ("int", "int | None") and parameter.name not in OTHERS:
                    yield function, parameter.name


def called(function, name, value, other):
    """Call a function with ``value`` for one parameter, and for the others that it needs what they may be."""
    positional, named = [], {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name != name and (parameter.default is not parameter.empty or parameter.kind in (2, 4)):
            continue
        if parameter.name == name:
            given = value
        elif parameter.name == "key":
            given = hx.random.key(0)
        elif "int" in str(parameter.annotation).split(" | "):
            given = 2
        else:
            given = (2, 2) if "shape" in parameter.name else other
        if parameter.default is parameter.empty and parameter.kind != parameter.KEYWORD_ONLY:
            positional.append(given)
        else:
            named[parameter.name] = given
    return function(*positional, **named)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
@pytest.mark.filterwarnings("ignore")
def test_a_number_that_is_no_integer_is_refused_by_an_error_of_the_package(module):
    others = np.eye(3, dtype="float32"), np.arange(1, 4)
    for (function, name), other in itertools.product(parameters(module), others):
        found = None
        try:
            called(function, name, 1.5, other)
        except (HandlaxError, TypeError, AttributeError) as error:
            found = error
        clear = isinstance(found, HandlaxError) or not any(word in str(found) for word in RAW)
        assert clear, (function, name, found)


@pytest.mark.parametrize("call", [
    lambda n: hx.numpy.linspace(0, 1, n), lambda n: hx.numpy.diff(np.ones(3), n),
    lambda n: hx.numpy.diag(np.ones(3), n), lambda n: hx.numpy.unique(np.ones(3), size=n),
    lambda n: hx.numpy.linalg.matrix_power(np.eye(2), n), lambda n: hx.numpy.fft.fft(np.ones(3), n),
    lambda n: hx.lax.top_k(np.ones(3), n), lambda n: hx.scipy.linalg.pascal(n),
    lambda n: hx.lax.slice_in_dim(np.ones(3), 0, n), lambda n: hx.lax.sort(np.ones(3), num_keys=n),
    lambda n: hx.nn.one_hot(np.arange(2), n), lambda n: hx.random.ball(hx.random.key(0), n),
    lambda n: hx.ops.segment_sum(np.ones(2), np.arange(2), n), lambda n: hx.numpy.ones(3)[:n],
    lambda n: hx.scipy.signal.stft(np.ones(8), nperseg=n), lambda n: hx.experimental.sparse.eye(n),
])
@pytest.mark.parametrize("wrong", [1.5, "2", None.__class__, np.ones(2)], ids=["float", "text", "class", "vector"])
def test_the_error_is_a_type_error_and_a_bad_argument(call, wrong):
    call(1)
    with pytest.raises(NotAnInteger) as caught:
        call(wrong)
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("n", [2, np.int8(2), np.asarray(2), True, hx.numpy.int32(2)])
def test_whole_numbers_of_any_kind_become_pythons(n):
    assert type(whole_number("f: n", n)) is int and whole_number("f: n", n) == int(n)


def test_a_traced_number_is_another_error():
    with pytest.raises(hx.errors.TracerIntegerConversionError):
        hx.jit(lambda n: hx.numpy.linspace(0, 1, n))(3)
