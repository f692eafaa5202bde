"""JAX's settings: those that mean something here, and those that do not."""

import warnings

import pytest

import handlax as hx
from handlax.effects.base.config import DEFAULTS, current
from handlax.effects.base.jax_settings import ALIASES, FIXED, WITHOUT_MEANING
from handlax.errors import ConfigurationError


@pytest.mark.parametrize(("name", "value"), [
    ("jax_debug_nans", True), ("jax_debug_infs", True), ("jax_disable_jit", True), ("jax_check_tracer_leaks", True),
    ("jax_default_matmul_precision", "highest"), ("jax_numpy_dtype_promotion", "strict"), ("jax_enable_x64", False),
    ("jax_numpy_rank_promotion", "raise"), ("jax_compilation_cache_dir", "/tmp/none"), ("jax_default_device", "cpu"),
    ("jax_platforms", "cpu"), ("jax_check_static_indices", True), ("jax_platform_name", "cpu"),
    pytest.param("jax_disable_most_optimizations", True, marks=pytest.mark.optimised),
])
def test_a_setting_that_means_the_same_is_set(name, value):
    before = getattr(hx.config, name)
    assert before is not value
    try:
        hx.config.update(name, value)
        assert getattr(hx.config, name) == hx.config.read(ALIASES[name]) == value
    finally:
        hx.config.update(name, before)
    assert getattr(hx.config, name) == before


def test_every_alias_names_a_setting():
    assert set(ALIASES.values()) <= DEFAULTS.keys()
    assert not FIXED.keys() & (ALIASES.keys() | DEFAULTS.keys())


def test_a_setting_without_meaning_changes_nothing_and_says_so_once():
    hx.clear_caches()
    before = current()
    for name in sorted(WITHOUT_MEANING):
        with pytest.warns(UserWarning, match=f"{name} is accepted") as caught:
            hx.config.update(name, True)
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hx.config.update(name, True)
            assert getattr(hx.config, name) is None
    assert current() is before


@pytest.mark.parametrize("name", sorted(FIXED.keys() - WITHOUT_MEANING))
def test_a_setting_that_says_how_programs_are_computed_has_one_value(name):
    hx.clear_caches()
    assert hx.config.read(name) is True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hx.config.update(name, True)
    with pytest.warns(UserWarning, match=f"{name} is accepted"):
        hx.config.update(name, False)
    assert hx.config.read(name) is True


def test_a_name_that_jax_has_not_is_refused():
    for name in ("jax_enable_x46", "jax_debug_nan", "nothing"):
        with pytest.raises(ConfigurationError, match=name):
            hx.config.update(name, True)
