"""The rule by which a module of JAX's leads to one of handlax's, and that its exceptions lead somewhere."""

import importlib
import pkgutil

import pytest

import handlax
from handlax.as_jax.places import MODULES, NAMES, OWN, children_of, is_there, place_of

EXTENSIONS = {"handlax.extend.ad", "handlax.extend.batching", "handlax.extend.mlir", "handlax.extend.partial_eval"}
PRIMITIVES = {"custom_jvp_call_p", "custom_vjp_call_p", "stop_gradient_p"}


@pytest.mark.parametrize(("module", "place"), [
    ("jax", "handlax"), ("jax.numpy", "handlax.numpy"), ("jax.scipy.stats.norm", "handlax.scipy.stats.norm"),
    ("jax.experimental.sparse", "handlax.experimental.sparse"), ("jax.version", "handlax.as_jax.version"),
    ("jax.effects", None), ("jax.interpreters.batching.batch", None), ("jax.lowering.jit", None), ("jax.as_jax", None),
    ("jax.numpy.no_such", None), ("jax.no.such.module", None), ("jax.errors.no_package", None),
])
def test_a_module_leads_to_the_one_of_its_name_unless_it_is_handlax_s_own(module, place):
    assert place_of(module) == place


def test_each_folder_is_a_namespace_of_jax_or_named_as_handlax_s_own():
    modules = {module.name for module in pkgutil.iter_modules(handlax.__path__)}
    assert modules >= OWN
    assert {f"jax.{name}" for name in modules - OWN} >= {"jax.numpy", "jax.lax", "jax.random", "jax.nn"}


@pytest.mark.parametrize("module", MODULES)
def test_an_exception_of_a_module_leads_somewhere(module):
    if MODULES[module] not in EXTENSIONS:
        assert importlib.import_module(MODULES[module])


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in NAMES for name in NAMES[module]])
def test_an_exception_of_a_name_leads_somewhere(module, name):
    place, _, attribute = NAMES[module][name].partition(":")
    if name not in PRIMITIVES:
        assert hasattr(importlib.import_module(place), attribute)


def test_a_package_of_the_tables_has_what_is_there():
    assert {"ad_util", "core", "dispatch", "traceback_util"} <= set(children_of("jax._src"))
    assert set(children_of("jax.interpreters")) <= {"ad", "batching", "mlir", "partial_eval", "pxla", "xla"}
    assert is_there("jax._src") and not is_there("jax._src.numpy") and not is_there("jax.no_such")
