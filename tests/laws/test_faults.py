"""Memory that is used up at any call, and a compiler that fails, leave the library whole."""

import pytest
from helpers.chosen_cases import rest_in_sweep
from laws.test_interrupts import PROGRAMS

import handlax as hx
from handlax.testing.faults import failing_compilations, interrupts

PLAIN = {name: lambda f=f: f(lambda g, *args: g(*args)) for name, f in PROGRAMS.items()}


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what comes in a finalizer
@pytest.mark.parametrize("name", PLAIN)
def test_memory_that_is_used_up_at_any_call_leaves_the_library_whole(name):
    for fault in interrupts(PLAIN[name], at="calls", error=MemoryError):
        assert fault.left is None or isinstance(fault.left, MemoryError), fault


# what NumPy alone executes, so that no compilation can fail
BY_NUMPY = (
    "handle", "handle an operation", "handle ctl", "eager", "linearize", "jvp", "hessian", "jet", "sparsify",
    "custom_vmap", "custom rules", "make_program",
)
FEW = ("jit", "scan", "grad handle")  # the caches are emptied for each fault


@pytest.mark.parametrize("name", rest_in_sweep([name for name in PLAIN if name not in BY_NUMPY], FEW))
def test_a_compilation_that_fails_leaves_the_library_whole(name):
    for fault in failing_compilations(PLAIN[name]):
        assert isinstance(fault.left, hx.errors.CompileError), fault
