"""What public functions are said to return: ``Any`` only where a checker cannot be told more, with the reason."""

import functools
import importlib
import inspect
import typing
from types import FunctionType

import pytest

NAMESPACES = ("", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "random", *[
    f"scipy.{name}" for name in ("cluster.vq", "fft", "linalg", "ndimage", "signal", "special", "stats.dirichlet",
                                 "stats.multinomial", "stats.multivariate_normal")])

TREES = "a tree like an argument, whose leaves become arrays, numbers among them"
OPTIONS = "how many arrays there are, or of which class they are, depends on options"
CALLERS = "what a function of the caller's gives, or a handler of an effect"
OUTSIDE = "an object of NumPy, of the runtime or of a file; a context that is one of several classes"

ANY_RESULTS = {
    TREES: """
        block_until_ready copy_to_host_async device_get device_put device_put_replicated device_put_sharded
        eval_shape freeze make_array_from_process_local_data reshard
        lax.all_gather lax.all_to_all lax.optimization_barrier lax.pbroadcast lax.pcast lax.pcummax lax.pcummin
        lax.pcumprod lax.pcumsum lax.pdot lax.pgather lax.pmax lax.pmean lax.pmin lax.ppermute lax.pprod lax.pshuffle
        lax.psum lax.psum_scatter lax.pswapaxes lax.pvary lax.ragged_all_to_all lax.stop_gradient
        lax.with_sharding_constraint
    """,
    OPTIONS: """
        lax.linalg.lu lax.linalg.qr lax.linalg.svd lax.reduce lax.reduce_window lax.sort nn.dot_product_attention
        scipy.linalg.eigh scipy.linalg.eigh_tridiagonal scipy.linalg.expm_frechet scipy.linalg.funm
        scipy.linalg.hessenberg scipy.linalg.lu scipy.linalg.qr scipy.linalg.svd
        jvp linearize vjp numpy.average numpy.gradient numpy.intersect1d numpy.polyfit
    """,
    CALLERS: """
        ask check_bounds check_finite checkpoint_name get perform pure_callback smap sow
        lax.custom_linear_solve lax.custom_root lax.platform_dependent lax.stage numpy.apply_along_axis numpy.piecewise
    """,
    OUTSIDE: """
        default_matmul_precision default_prng_impl draw enable_x64 explain_cache_misses log_compiles no_tracing
        numpy_dtype_promotion numpy_rank_promotion lax.dtype numpy.finfo numpy.get_printoptions numpy.iinfo numpy.load
        numpy.printoptions numpy.set_printoptions
    """,
}


def declares_any(function):
    """Say whether a function, or one of its overloads, is declared to return ``Any``."""
    plain = inspect.unwrap(function)
    declared = typing.get_overloads(plain) or [plain]
    return any(f.__annotations__.get("return") in ("Any", None, typing.Any) for f in declared)


@functools.cache
def any_results(name):
    """Give the names of the functions of a namespace that are declared to return ``Any``."""
    namespace = importlib.import_module(f"handlax.{name}".rstrip("."))
    names = getattr(namespace, "__all__", None) or [word for word in dir(namespace) if word[0] != "_"]
    public = {word: getattr(namespace, word) for word in names}
    prefix = f"{name}." if name else ""
    return {prefix + word for word, f in public.items()
            if isinstance(inspect.unwrap(f) if callable(f) else f, FunctionType) and declares_any(f)}


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_result_is_any_for_a_reason(name):
    listed = {word for words in ANY_RESULTS.values() for word in words.split()}
    of_namespace = {word for word in listed if word.rpartition(".")[0] == name}
    found = any_results(name)
    assert found <= of_namespace, f"declare the result, or list it under a reason: {sorted(found - of_namespace)}"
    assert found == of_namespace, f"no longer Any: {sorted(of_namespace - found)}"


@pytest.mark.parametrize(("result", "found"), [
    ("Any", True), (None, True), ("Array", False), ("tuple[Any, ...]", False),
])
def test_a_result_that_is_any_is_found(result, found):
    def function(x):
        return x

    function.__annotations__["return"] = result
    assert declares_any(function) == found
