"""Settings: records in force for a scope, a thread, or the process."""

import contextvars
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers.other_threads import LIMIT, OtherThread, in_thread

import handlax as hx
from handlax.effects.base.config import CHOICES, DEFAULTS, Process, configure, current, in_force
from handlax.effects.base.jax_settings import ALIASES
from handlax.errors import ConfigurationError


def test_a_scope_ends_with_its_block_also_by_an_exception():
    before = current()
    with configure(default_float="float64") as outer:
        with configure(numpy_dtype_promotion="strict") as inner:
            assert (inner.default_float, inner.numpy_dtype_promotion) == (np.dtype("float64"), "strict")
        assert current() is outer and outer.numpy_dtype_promotion == "standard"
        with pytest.raises(ZeroDivisionError), configure(numpy_dtype_promotion="strict"):
            1 / 0
        assert current() is outer
    assert current() is before


def test_a_record_that_was_read_elsewhere_may_be_put_in_force():
    rule = {hx.operations.Sin: lambda op, x: 2 * x}
    with configure(default_float="float64"), hx.rules(evaluate=rule):
        record = current()
    before = current()
    with in_force(record):
        assert current() == record and hx.lax.sin(3.0) == 6.0
        with configure(default_float="float32"):
            assert current().default_float == "float32" and hx.lax.sin(3.0) == 6.0
        with in_force(before):
            assert current() == before and hx.lax.sin(0.0) == 0.0
    assert current() is before


def test_a_record_shows_every_setting():
    with configure(debug_nans=True):
        text = repr(current())
    assert "debug_nans=True, " in text and all([f"{name}=" in text for name in DEFAULTS])


def test_equal_settings_are_one_record():
    with configure(default_int="int64") as one:
        pass
    with configure(default_int=np.int64) as other:
        assert other is one
        assert current().set(default_int=current().default_int) is other


def test_a_scope_is_that_of_its_thread_and_an_update_that_of_the_process():
    try:
        with configure(default_float="float64"):
            hx.config.update("jax_debug_nans", True)
            seen = in_thread(lambda: (current().default_float.name, current().debug_nans))
            assert current().debug_nans and current().default_float == "float64"
        assert seen == ("float32", True) and hx.config.jax_debug_nans
    finally:
        hx.config.update("debug_nans", False)


@pytest.mark.parametrize(("name", "value"), [
    ("debug_infs", True), ("numpy_rank_promotion", "raise"), ("default_int", np.dtype("int64")), ("enable_x64", True),
])
def test_a_scope_keeps_what_it_sets_and_sees_every_other_update(name, value):
    before = getattr(current(), name)
    try:
        with configure(default_float="float64"), configure(**{name: before}), configure(disable_jit=True):
            hx.config.update(name, value)
            assert getattr(current(), name) == before  # set by a scope, if not the innermost
            hx.config.update("debug_nans", True)
            assert current().debug_nans and current().disable_jit
        with configure(default_float="float64"):
            assert getattr(current(), name) == value
            hx.config.update(name, before)
            assert getattr(current(), name) == before and current().default_float == "float64"
    finally:
        hx.config.update("debug_nans", False)
        hx.config.update(name, before)


def test_an_update_reaches_the_scopes_of_other_threads_and_contexts():
    opened, updated = threading.Event(), threading.Event()

    def read():
        with configure(default_int="int64"):
            opened.set()
            assert updated.wait(LIMIT)
            return current().debug_nans, current().default_int.name

    with configure(default_float="float64"):
        copied = contextvars.copy_context()  # stays within the block that ends here
    thread = OtherThread(read)
    try:
        assert opened.wait(LIMIT)
        hx.config.update("debug_nans", True)
        updated.set()
        assert thread.result() == (True, "int64")
        assert copied.run(lambda: (current().debug_nans, current().default_float.name)) == (True, "float64")
    finally:
        hx.config.update("debug_nans", False)


def test_an_update_that_contradicts_a_scope_changes_nothing():
    before = current()
    with configure(default_float="float64") as inner:
        with pytest.raises(ConfigurationError, match="must be of 32 bits"):
            hx.config.update("enable_x64", False)
        assert current() is inner
    assert current() == before
    hx.config.update("enable_x64", False)  # the scope has gone
    hx.config.update("enable_x64", before.enable_x64)
    assert current() == before


@pytest.mark.parametrize(("changes", "words"), [
    ({"default_floats": "float64"}, r"(?s)no setting 'default_floats'.*did you mean 'default_float'"),
    ({"precision_of_all": 1}, r"(?s)no setting.*the settings are: enable_x64, .*, mesh, .*, traceback_filtering\."),
    ({"default_float": "int32"}, "must be one of"),
    ({"disable_jit": "yes"}, "must be one of False, True"),
    ({"jax_enable_x64": 1.5}, "no setting 'jax_enable_x64'"),
    ({"enable_x64": "yes"}, "must be one of None, False, True"),
    ({"enable_x64": False, "default_float": "float64"}, "must be of 32 bits while enable_x64 is False"),
])
def test_what_is_no_setting_is_refused(changes, words):
    with pytest.raises(ConfigurationError, match=words), configure(**changes):
        pass


def test_how_operands_are_promoted_is_set_for_a_block():
    x = hx.numpy.ones((2, 2), "float32")
    with hx.numpy_dtype_promotion("strict"), pytest.raises(hx.errors.DTypeMismatch):
        x + hx.numpy.ones((2, 2), "float16")
    with hx.numpy_rank_promotion("raise"), pytest.raises(hx.errors.ShapeMismatch):
        x + hx.numpy.ones(2, "float32")
    assert (x + hx.numpy.ones(2, "float16")).dtype == "float32"


def test_64_bits_bring_their_default_dtypes():
    for value, widths in ((True, ("float64", "int64")), (False, ("float32", "int32")), (None, ("float32", "int32"))):
        with configure(default_int="int64"), hx.enable_x64(value) as settings:
            assert (settings.default_float.name, settings.default_int.name) == widths
            assert hx.config.jax_enable_x64 is hx.config.read("enable_x64") is value
            assert hx.config.x64_enabled is bool(value)
    with configure(enable_x64=True, default_float="float32") as settings:
        assert settings.default_float.name == "float32"
    with configure(enable_x64=True), configure(enable_x64=None):
        assert current() == current().set(enable_x64=None)
    with configure(enable_x64=False), pytest.raises(ConfigurationError, match="32 bits"):
        current().set(default_int="int64")


@pytest.mark.parametrize(("text", "value"), [("1", True), ("true", True), ("0", False), ("False", False), ("", None)])
def test_64_bits_are_set_by_the_environment(text, value, monkeypatch):
    monkeypatch.setenv("HANDLAX_ENABLE_X64", text)
    assert Process().settings.enable_x64 is value


@pytest.mark.parametrize(("variable", "name", "text", "value"), [
    ("HANDLAX_DEBUG_NANS", "debug_nans", "on", True),
    ("JAX_DEBUG_NANS", "debug_nans", "TRUE", True),
    ("JAX_ENABLE_X64", "enable_x64", "0", False),
    ("JAX_NUMPY_DTYPE_PROMOTION", "numpy_dtype_promotion", "strict", "strict"),
    ("HANDLAX_DEFAULT_FLOAT", "default_float", "float64", np.dtype("float64")),
])
def test_settings_are_read_from_the_environment(variable, name, text, value, monkeypatch):
    monkeypatch.setenv(variable, text)
    assert getattr(Process().settings, name) == value
    monkeypatch.setenv(variable, "nonsense")
    with pytest.raises(ConfigurationError, match=f"{variable} must be"):
        Process()


OBJECTS = {"mesh", "abstract_mesh", "user_contexts", "tables", "containers"}  # no text stands for them
AT_FIRST_USE = {"platforms", "num_cpu_devices"}  # read by the runtime


def jax_variable(name):
    return next((theirs.upper() for theirs, ours in ALIASES.items() if ours == name), f"JAX_{name.upper()}")


@pytest.mark.parametrize("name", sorted(DEFAULTS.keys() - OBJECTS - AT_FIRST_USE))
def test_every_setting_is_read_from_its_variable_and_that_of_jax(name, monkeypatch):
    choices = CHOICES.get(name, ("cpu",))
    value = next(x for x in choices[::-1] if x is not None)
    for variable in (f"HANDLAX_{name.upper()}", jax_variable(name)):
        with monkeypatch.context() as changed:
            changed.delenv(f"HANDLAX_{name.upper()}", raising=False)
            changed.setenv(variable, str(value))
            assert getattr(Process().settings, name) == value
            if name in CHOICES:
                changed.setenv(variable, "nonsense")
                with pytest.raises(ConfigurationError, match=f"{variable} must be"):
                    Process()


@pytest.mark.parametrize(("variable", "text", "expected"), [
    ("JAX_DEFAULT_PRNG_IMPL", "rbg", "rbg"), ("HANDLAX_DEFAULT_MATMUL_PRECISION", "highest", "highest"),
    ("JAX_COMPILATION_CACHE_DIR", "/nowhere", "/nowhere"),
    ("HANDLAX_DEFAULT_PRNG_IMPL", "none", "must be one of threefry2x32"),
])
def test_a_new_process_has_the_settings_of_its_environment(variable, text, expected):
    name = variable.partition("_")[2].lower()
    code = f"import handlax as hx; print(hx.config.{name})"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, variable: text}, capture_output=True,
                          text=True, timeout=60)
    assert expected in done.stdout + done.stderr


def test_flags_of_the_command_line_are_settings_where_they_are_asked_for(monkeypatch):
    monkeypatch.setattr("sys.argv", ["test", "--jax_debug_nans", "-x", "--name=n", "--", "--jax_debug_infs"])
    with configure(debug_nans=False):
        hx.config.parse_flags_with_absl()
    try:
        assert hx.config.debug_nans and not hx.config.debug_infs
        monkeypatch.setattr("sys.argv", [
            "test", "--nojax_debug_nans", "--jax_default_matmul_precision=highest", "--jax_threefry_partitionable"])
        hx.config.parse_flags_with_absl()
        assert not hx.config.debug_nans and hx.config.default_matmul_precision == "highest"
    finally:
        hx.config.update("debug_nans", False)
        hx.config.update("default_matmul_precision", None)


@pytest.mark.parametrize(
    ("flag", "words"),
    [("--jax_debug_nans=maybe", "--jax_debug_nans must be 0 or 1"), ("--jax_something", "no setting 'jax_something'"),
     ("--jax_num_cpu_devices=none", "positive integer"), ("--jax_num_cpu_devices=1000", "fixed at the first use")],
)
def test_a_wrong_flag_is_refused(flag, words, monkeypatch):
    monkeypatch.setattr("sys.argv", ["test", flag])
    hx.devices()
    with pytest.raises(ConfigurationError, match=words):
        hx.config.parse_flags_with_absl()


def test_the_log_level_is_set_before_jaxlib_is_loaded():
    code = """
import sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("jaxlib."): import os; print(os.environ["TF_CPP_MIN_LOG_LEVEL"]); sys.meta_path.remove(self)
sys.meta_path.insert(0, Watch())
import {module}
import handlax; handlax.devices()
"""
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    for module in ("handlax.extend.mlir", "handlax.tree", "handlax.lowering.clients.platforms"):
        command = [sys.executable, "-c", code.format(module=module)]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        assert (run.stdout, run.stderr) == ("1\n", "")


def test_our_variables_are_stronger_than_those_of_jax(monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("HANDLAX_ENABLE_X64", "0")
    assert Process().settings.enable_x64 is False and Process().settings.default_float.name == "float32"


def test_a_default_dtype_that_the_environment_names_is_not_that_of_its_width(monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("HANDLAX_DEFAULT_FLOAT", "float32")
    settings = Process().settings
    assert (settings.default_float.name, settings.default_int.name) == ("float32", "int64")


def test_an_environment_without_truth_is_refused(monkeypatch):
    monkeypatch.setenv("HANDLAX_ENABLE_X64", "maybe")
    with pytest.raises(ConfigurationError, match="HANDLAX_ENABLE_X64 must be 0 or 1, got 'maybe'"):
        Process()
