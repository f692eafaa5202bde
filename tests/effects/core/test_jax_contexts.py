"""Guards refuse or log transfers and executions in their scope; other settings of JAX as context managers."""

import logging
import warnings

import numpy as np
import pytest

import handlax as hx
from handlax import errors, random
from handlax import numpy as hnp

HOST = np.ones(3, np.float32)
f = hx.jit(lambda x: x + 1)
on_device = lambda: hx.device_put(hnp.ones(3), hx.devices()[0])
# what is done: its direction, and whether it is explicit
TRANSFERS = {
    "a NumPy array is an argument": (lambda x: f(HOST), "host_to_device", False),
    "a number is an argument": (lambda x: f(1.0), "host_to_device", False),
    "an array in a tree is an argument": (lambda x: hx.jit(lambda t: t["a"])({"a": HOST}), "host_to_device", False),
    "a compiled function is called": (lambda x: f.lower(HOST).compile()(HOST), "host_to_device", False),
    "device_put": (lambda x: hx.device_put(HOST), "host_to_device", True),
    "device_put elsewhere": (lambda x: hx.device_put(x, hx.devices()[1]), "device_to_device", True),
}
REFUSED = {"allow": (), "log": (), "disallow": (False,), "log_explicit": (), "disallow_explicit": (False, True)}
LOGGED = {"allow": (), "log": (False,), "disallow": (), "log_explicit": (False, True), "disallow_explicit": ()}


SETTINGS = {
    "allow_f16_reductions": True, "array_garbage_collection_guard": "allow", "auto_pcast": True,
    "check_tracer_leaks": True, "debug_infs": True, "debug_nans": True,
    "default_device": None, "default_matmul_precision": "high", "default_prng_impl": "rbg",
    "disable_jit": True, "enable_checks": False, "enable_custom_prng": True, "enable_x64": True,
    "explain_cache_misses": True, "jax2tf_associative_scan_reductions": True, "legacy_prng_key": "error",
    "log_compiles": True, "make_user_context": None, "no_execution": False, "no_tracing": False,
    "numpy_dtype_promotion": "strict", "numpy_rank_promotion": "raise",
    "remove_size_one_mesh_axis_from_type": True, "softmax_custom_jvp": True, "threefry_partitionable": True,
    "transfer_guard": "allow", "transfer_guard_device_to_device": "allow",
    "transfer_guard_device_to_host": "allow", "transfer_guard_host_to_device": "allow",
}


@pytest.mark.filterwarnings("ignore:.*has no meaning here")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_may_decorate_a_function_which_is_called_under_it_each_time(name):
    setting = getattr(hx, name)(SETTINGS[name])
    setting = setting(1) if name == "make_user_context" else setting
    seen = []
    decorated = setting(lambda x: seen.append(hx.config.enable_x64) or x)
    assert decorated(1) == decorated(2) - 1 == 1
    assert seen == [True if name == "enable_x64" else hx.config.enable_x64] * 2


@pytest.mark.parametrize("level", REFUSED)
@pytest.mark.parametrize("case", TRANSFERS)
def test_a_transfer_is_allowed_logged_or_refused(case, level, caplog):
    transfer, direction, explicit = TRANSFERS[case]
    if "elsewhere" in case and len(hx.devices()) < 2:
        pytest.skip("one device")
    x = on_device()
    for guard in (hx.transfer_guard, getattr(hx, f"transfer_guard_{direction}")):
        for _ in range(2):  # the second time by a fast path, if there were one
            transfer(x)
            caplog.clear()
            with guard(level), caplog.at_level(logging.WARNING, "handlax"):
                f(x)
                if explicit in REFUSED[level]:
                    with pytest.raises(errors.TransferRefused, match=direction.replace("_", " ")):
                        transfer(x)
                else:
                    transfer(x)
            assert bool(caplog.records) == (explicit in LOGGED[level])


def test_a_guard_of_one_direction_allows_the_others():
    with hx.transfer_guard("disallow"), hx.transfer_guard_host_to_device("allow"):
        f(HOST)
    with hx.transfer_guard_device_to_device("disallow_explicit"), hx.transfer_guard_device_to_host("disallow"):
        np.asarray(f(HOST))
    with pytest.raises(errors.ConfigurationError, match="transfer_guard"):
        hx.transfer_guard("never").__enter__()


def test_the_guard_of_the_process_is_a_setting():
    hx.config.update("jax_transfer_guard", "disallow")
    try:
        assert hx.config.jax_transfer_guard_host_to_device == hx.config.jax_transfer_guard == "disallow"
        with pytest.raises(errors.TransferRefused):
            f(HOST)
    finally:
        hx.config.update("jax_transfer_guard", "allow")
    f(HOST)


def test_what_is_computed_by_numpy_is_no_transfer():
    with hx.transfer_guard("disallow"):
        y = f(hnp.ones(3) * 2 + HOST)
    assert y.tolist() == [4, 4, 4]


@pytest.mark.skipif(len(hx.devices()) < 2, reason="one device")
def test_an_argument_on_another_device_is_a_transfer():
    x, y = on_device(), hx.jit(lambda x: x)(hnp.zeros(3))
    g = hx.jit(lambda x, y: x + y)
    there = hx.device_put(x, hx.devices()[1])
    assert g(there, y).devices() == {hx.devices()[1]}
    with hx.transfer_guard("disallow"), pytest.raises(errors.TransferRefused, match="device to device"):
        g(there, y)


def test_nothing_is_executed_under_no_execution():
    x = hnp.ones(3)
    y = f(x)
    with hx.no_execution():
        compiled = f.lower(x).compile()
        for execute in (lambda: f(x), lambda: x + 1, lambda: hnp.sin(x), lambda: compiled(x), lambda: hx.lax.cond(
            x[0] > 0, lambda: 1.0, lambda: 2.0)):
            with pytest.raises(errors.ExecutionRefused):
                execute()
        assert hx.eval_shape(f, x).shape == (3,) and len(hx.make_program(f)(x).ops) == 1
    assert (compiled(x) == y).all() and (f(x) == y).all()


def test_keys_as_words_are_allowed_warned_of_or_refused():
    words, key = random.PRNGKey(0), random.key(0)
    with hx.legacy_prng_key("error"):
        assert random.bits(key) == random.bits(key)
        with pytest.raises(ValueError, match="typed key"):
            random.bits(words)
    with hx.legacy_prng_key("warn"):
        with pytest.warns(UserWarning, match="legacy"):
            found = random.bits(words)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            random.bits(key)
    assert found == random.bits(words)
    with hx.enable_custom_prng(True):
        assert random.PRNGKey(0).dtype == key.dtype and (random.PRNGKey(0) == key).all()


def test_settings_without_meaning_say_so():
    hx.clear_caches()
    contexts = hx.softmax_custom_jvp, hx.enable_checks, hx.auto_pcast, hx.jax2tf_associative_scan_reductions
    for context in (*contexts, hx.debug_key_reuse):
        with pytest.warns(UserWarning, match="no meaning here"), context(True):
            pass
    with hx.threefry_partitionable(True):
        pass
    with pytest.raises(errors.ConfigurationError, match="must be True"):
        hx.threefry_partitionable(False)


def test_a_context_of_your_own_is_part_of_the_key_of_traces():
    mode, traced = hx.make_user_context("plain"), []

    @hx.jit
    def g(x):
        traced.append(mode.value)
        return x * (2 if mode.value == "double" else 1)

    assert g(3) == 3
    with mode("double"):
        assert g(3) == 6 and mode.value == "double"
        with mode("plain"):
            assert g(3) == 3
        assert g(3) == 6
    assert g(3) == 3 and mode.value == "plain"
    assert traced[:2] == ["plain", "double"] and len(traced) <= 3
    with pytest.raises(errors.BadStaticArgument, match="must be hashable"):
        mode([1])
