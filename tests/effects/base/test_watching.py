"""Settings that watch tracing and compiling."""

import functools
import logging

import numpy as np
import pytest

import handlax as hx
from handlax.effects.base.config import WATCHES, current
from handlax.effects.base.watching import label_of
from handlax.errors import ConfigurationError, TracingRefused


@pytest.mark.parametrize("name", [name for name in WATCHES if name != "traceback_filtering"])
def test_a_watch_is_a_setting_that_is_in_no_cache_key(name):
    hx.config.update(f"jax_{name}", True)
    try:
        assert hx.config.read(name) is True and getattr(current(), name)
        with hx.configure(**{name: True}) as watched, getattr(hx, name)(False), hx.configure() as other:
            assert getattr(hx.config, name) is False and watched is not other
            assert watched == other and hash(watched) == hash(other) and watched.mark is other.mark
        assert getattr(hx.config, name) is True
    finally:
        hx.config.update(name, False)
    assert not getattr(current(), name)


@pytest.mark.parametrize("name", [name for name in WATCHES if name != "traceback_filtering"])
def test_a_watch_is_on_or_off(name):
    with pytest.raises(ConfigurationError, match="must be one of False, True, got 'off'"):
        hx.config.update(name, "off")


def test_under_no_tracing_only_what_was_traced_is_called():
    f = hx.jit(lambda x: x * 3)
    f(2.0)
    with hx.no_tracing():
        assert float(f(5.0)) == 15.0
        with pytest.raises(TracingRefused, match="no_tracing"):
            f(np.ones(2, np.float32))
        with pytest.raises(TracingRefused):
            f.lower(np.ones(2, np.float32))
        assert hx.grad(lambda x: x * x)(3.0) == 6.0 and hx.make_program(lambda x: x * x)(3.0).effects == frozenset()
    assert f(np.ones(2, np.float32)).tolist() == [3.0, 3.0] and f._cache_size() == 2


@pytest.mark.parametrize(("scope", "level"), [(None, logging.DEBUG), (hx.log_compiles, logging.WARNING)])
def test_a_first_call_logs_its_trace_and_its_compilation(caplog, scope, level):
    number = 17.0 + level  # another program each time
    f = hx.jit(lambda x: x * number)
    with caplog.at_level(level, "handlax"):
        if scope is None:
            f(2.0)
        else:
            with scope():
                f(2.0)
        messages = [r.getMessage() for r in caplog.records if r.levelno == level]
        assert [m.split(" in ")[0].split(" for ")[0] for m in messages] == [
            "Finished tracing jit(<lambda>)", "Finished lowering jit(<lambda>)", "Compiling jit(<lambda>)",
            "Finished XLA compilation of jit(<lambda>)",
        ]
        caplog.clear()
        f(3.0)
        assert not caplog.records


def test_a_miss_is_explained(caplog):
    f = hx.jit(lambda x, **more: x)
    f(2.0)
    with hx.explain_cache_misses(), caplog.at_level(logging.WARNING, "handlax"):
        f(3.0)
        assert not caplog.records
        f(2)
        f(2, y=1)
    assert [("dtype from float32 to int32" in m, "structure from" in m) for m in caplog.messages] == [
        (True, False), (False, True)
    ]


def test_a_label_tells_the_line_and_the_code_of_a_function():
    def made():
        return lambda x: x + 1

    class Model:
        def __call__(self, x):
            return x

    line = made.__code__.co_firstlineno
    f, site = made(), f"test_watching.py:{line + 1}"
    assert label_of(f, "f") == label_of(made(), "f") == ("f", site, label_of(f, "f").code)
    assert label_of(functools.partial(f, 1), "f") == label_of(f, "f")
    assert label_of(hx.grad(f), "f").site == site and label_of(hx.grad(f), "f") != label_of(f, "f")
    assert label_of(hx.grad(hx.grad(f)), "f") != label_of(hx.grad(f), "f")
    assert label_of(Model(), "m") == label_of(Model().__call__, "m")
    assert label_of(Model(), "m").site == f"test_watching.py:{line + 4}"
    assert label_of(max, "max") == ("max", "", 0)


def test_a_function_that_wraps_itself_has_a_label():
    def f(x):
        return x

    before = label_of(f, "f")
    f.__wrapped__ = f
    assert label_of(f, "f") == before


def test_events_tell_the_line_of_a_function():
    heard = []
    listener = lambda event, seconds, **kwargs: heard.append(kwargs)
    f = lambda x: x * 31
    hx.monitoring.register_event_duration_secs_listener(listener)
    try:
        hx.jit(f)(1.0)
    finally:
        hx.monitoring.unregister_event_duration_listener(listener)
    name, site, code = label_of(f, "jit(<lambda>)")
    assert heard == [dict(fun_name=name, fun_site=site, fun_code=code)] * 3 and site.startswith("test_watching.py:")
