"""Tracebacks of exceptions that leave the package."""

import contextlib
import gc
import sys
import traceback
import types
import weakref

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.source_locations import is_internal
from handlax.effects.base.tracebacks import NOTE, UnfilteredStackTrace, boundary
from handlax.errors import ConfigurationError, NotAnArray

ONE, THREE = hnp.float32(1.0), hnp.ones(3)


class Mistake(Exception):
    """Of the user."""


def fails(*args, **kwargs):
    raise Mistake


@pytest.fixture
def filtering():
    """Sets the mode for the time of a test."""
    before = hx.config.jax_traceback_filtering
    yield lambda mode: hx.config.update("jax_traceback_filtering", mode)
    hx.config.update("jax_traceback_filtering", before)


def frames(error):
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def internal(frame):
    return is_internal(frame.f_code.co_filename)


def called(decorate, f, *args):
    """A function with a custom rule, called."""
    function = decorate(f)
    for define in ("defjvp", "def_vmap"):
        getattr(function, define, lambda rule: None)(fails)
    if hasattr(function, "defvjp"):
        function.defvjp(fails, fails)
    return function(*args)


CALLS = {
    "jit": lambda f: hx.jit(f)(ONE),
    "jit of trees": lambda f: hx.jit(f)([ONE], y=2),
    "jit with static arguments": lambda f: hx.jit(f, static_argnums=0)(1, ONE),
    "jit in another trace": lambda f: hx.jit(lambda x: hx.jit(f)(x) + 1)(ONE),
    "trace": lambda f: hx.jit(f).trace(ONE),
    "lower": lambda f: hx.jit(f).lower(ONE),
    "eval_shape of jit": lambda f: hx.jit(f).eval_shape(ONE),
    "eval_shape": lambda f: hx.eval_shape(f, ONE),
    "make_program": lambda f: hx.make_program(f)(ONE),
    "effects_of": lambda f: hx.effects_of(f)(ONE),
    "closure_convert": lambda f: hx.closure_convert(f, ONE),
    "named_call": lambda f: hx.named_call(f)(ONE),
    "vmap": lambda f: hx.vmap(f)(THREE),
    "jvp": lambda f: hx.jvp(f, (ONE,), (ONE,)),
    "vjp": lambda f: hx.vjp(f, ONE),
    "linearize": lambda f: hx.linearize(f, ONE),
    "linear_transpose": lambda f: hx.linear_transpose(f, ONE),
    **{name: lambda f, name=name: getattr(hx, name)(f)(ONE)
       for name in ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "checkpoint")},
    "saved_residuals": lambda f: hx.ad_checkpoint.saved_residuals(f, ONE),
    "custom_jvp": lambda f: called(hx.custom_jvp, f, ONE),
    "custom_vjp": lambda f: called(hx.custom_vjp, f, ONE),
    "custom_vmap": lambda f: called(hx.custom_batching.custom_vmap, f, ONE),
    "sequential_vmap": lambda f: hx.vmap(hx.custom_batching.sequential_vmap(f))(THREE),
    "custom_root": lambda f: lax.custom_root(f, ONE, f, f),
    "custom_linear_solve": lambda f: lax.custom_linear_solve(f, ONE, f),
    "scan": lambda f: lax.scan(f, ONE, THREE),
    "map": lambda f: lax.map(f, THREE),
    "while_loop": lambda f: lax.while_loop(lambda c: c < 2, f, ONE),
    "fori_loop": lambda f: lax.fori_loop(0, 3, f, ONE),
    "cond": lambda f: lax.cond(True, f, f, ONE),
    "switch": lambda f: lax.switch(0, [f, f], ONE),
    "associative_scan": lambda f: lax.associative_scan(f, THREE),
    "reduce": lambda f: lax.reduce(THREE, ONE, f, (0,)),
    "platform_dependent": lambda f: lax.platform_dependent(ONE, default=f),
    "vectorize": lambda f: hnp.vectorize(f)(THREE),
    "apply_over_axes": lambda f: hnp.apply_over_axes(f, THREE, 0),
    "piecewise": lambda f: hnp.piecewise(THREE, [THREE > 0], [f, f]),
    "fromfunction": lambda f: hnp.fromfunction(f, (3,)),
    "apply_along_axis": lambda f: hnp.apply_along_axis(f, 0, THREE),
    "handle": lambda f: hx.handle(hx.handler({}))(f)(ONE),
    "handle that resumes": lambda f: hx.handle(hx.handler({hx.operations.Sin: hx.ctl(fails)}))(f)(ONE),
    "reap": lambda f: hx.reap(f, tag="t")(ONE),
    "plant": lambda f: hx.plant(f, tag="t")({}, ONE),
    "nest": lambda f: hx.nest(f, scope="s")(ONE),
    "checkify": lambda f: hx.checkify(f)(ONE),
    "experimental.checkify": lambda f: hx.experimental.checkify.checkify(f)(ONE),
    "draw": lambda f: hx.draw(f)(ONE),
    "step": lambda f: hx.step(f)(ONE),
    "seed": lambda f: hx.probability.seed(f, hx.random.key(0))(ONE),
    "trace of samples": lambda f: hx.probability.trace(f)(ONE),
    "a deep stack": lambda f: deep(f, 40),
}


def deep(f, depth):
    """Jitted functions that call each other, on more than one of Python's stacks."""
    return hx.jit(f)(ONE) if depth == 0 else hx.jit(lambda x: deep(f, depth - 1) + x)(ONE)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("mode", ["auto", "quiet_remove_frames", "remove_frames", "tracebackhide", "off"])
def test_what_a_function_raises_leaves_every_transformation_without_its_frames(filtering, mode, name):
    filtering(mode)
    with pytest.raises(Mistake) as caught:
        CALLS[name](fails)
    error = caught.value
    shown = frames(error)
    assert shown[-1].f_code is fails.__code__ and shown[0].f_code.co_name == caught.traceback[0].frame.code.name
    if mode == "off":
        assert any(map(internal, shown))
    elif mode == "tracebackhide":
        assert all(("__tracebackhide__" in frame.f_locals) == internal(frame) for frame in shown)
    else:
        assert not any(map(internal, shown))
    assert getattr(error, "__notes__", []) == [NOTE] * (mode in ("auto", "quiet_remove_frames"))
    assert isinstance(error.__cause__, UnfilteredStackTrace) == (mode == "remove_frames")
    if mode == "remove_frames":
        assert any(map(internal, frames(error.__cause__)))


def test_an_error_of_the_package_ends_at_the_line_of_the_user(filtering):
    filtering("auto")
    with pytest.raises(NotAnArray) as caught:
        hx.jit(hnp.sin)(object())
    assert not any(map(internal, frames(caught.value))) and str(caught.value).count("\n") >= 1


def test_causes_and_contexts_are_filtered_and_kept(filtering):
    filtering("auto")

    def fails_again(x):
        try:
            hx.vmap(fails)(x)
        except Mistake as error:
            raise ValueError("again") from error

    with pytest.raises(ValueError, match="again") as caught:
        hx.jit(fails_again)(THREE)
    cause = caught.value.__cause__
    assert isinstance(cause, Mistake) and not hasattr(cause, "__notes__")
    assert [frame.f_code.co_name for frame in frames(cause)] == ["fails_again", "fails"]


def test_an_exception_is_filtered_where_it_leaves_the_outermost_boundary(filtering):
    filtering("auto")
    lengths = []

    @boundary
    def outer():
        try:
            hx.vmap(fails)(THREE)
        except Mistake as error:
            lengths.append(len(frames(error)))
            raise

    with pytest.raises(Mistake) as caught:
        outer()
    assert lengths[0] > 2 and not any(map(internal, frames(caught.value)))
    with pytest.raises(Mistake) as again:
        hx.jit(lambda x: raises(caught.value))(ONE)
    assert again.value.__notes__ == [NOTE] and not any(map(internal, frames(again.value)))


def raises(error):
    raise error


def test_a_filtered_exception_keeps_nothing_alive(filtering):
    class Holder:
        def __call__(self):
            return hx.jit(fails)(ONE)

    for mode in ("off", "tracebackhide", "remove_frames", "quiet_remove_frames"):
        filtering(mode)
        holder = Holder()
        alive = weakref.ref(holder)
        gc.disable()
        try:
            with_mistake(holder)
            del holder
            assert alive() is None
        finally:
            gc.enable()


def with_mistake(function):
    with contextlib.suppress(Mistake):
        function()


def test_under_ipython_frames_are_hidden(filtering, monkeypatch):
    filtering("auto")
    for shell, hidden in ((object(), True), (None, False)):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda shell=shell: shell))
        with pytest.raises(Mistake) as caught:
            hx.vmap(fails)(THREE)
        assert any(map(internal, frames(caught.value))) == hidden


def test_a_mode_that_there_is_not_is_refused():
    with pytest.raises(ConfigurationError, match="quiet_remove_frames, got 'some'"):
        hx.config.update("jax_traceback_filtering", "some")


def test_a_boundary_has_the_name_of_its_function():
    assert lax.scan.__name__ == "scan" and "slices" in lax.scan.__doc__
