"""Settings that watch tracing and compiling."""

import logging

import numpy as np
import pytest

import handlax as hx
from handlax.effects.base.config import WATCHES, current
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
            "Finished tracing jit(<lambda>)", "Finished lowering jit(_lambda)", "Compiling jit(_lambda)",
            "Finished XLA compilation of jit(_lambda)",
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
