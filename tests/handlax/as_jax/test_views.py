"""Views: which names they have, what assigning one means, what is missing, and JAX itself beside them."""

from importlib import import_module

import pytest
from helpers.new_process import in_new_process

from handlax.as_jax.places import ABSENT, NAMES
from handlax.as_jax.views import View

START = "import handlax, handlax.as_jax; handlax.as_jax.install(); import sys, importlib; "


def shown(code):
    """What the last line of a program in which handlax is installed as jax prints."""
    return in_new_process(START + "\n" + code).rpartition("\n")[2]


def test_names_are_those_of_handlax_and_modules_are_views():
    assert shown("""
import jax, jax.numpy as jnp
from jax import lax, tree_util
from jax.scipy.stats import norm
import jax.scipy.stats.norm
from jax.experimental import sparse
assert jax.jit is handlax.jit and jnp.sin is handlax.numpy.sin and lax.scan is handlax.lax.scan
assert jax.numpy.linalg.norm is handlax.numpy.linalg.norm and sparse.BCOO is handlax.experimental.sparse.BCOO
assert norm is jax.scipy.stats.norm and norm.logpdf is handlax.scipy.stats.norm.logpdf
assert all(module is not getattr(handlax, module.__name__[4:], None) for module in (jnp, lax, tree_util))
assert handlax.numpy.__spec__.name == handlax.numpy.__name__ == "handlax.numpy" and jnp.__spec__.name == "jax.numpy"
assert {"sin", "linalg"} <= set(dir(jnp)) and {"numpy", "jit", "__version__", "interpreters"} <= set(dir(jax))
assert jax.version.__version_info__ is jax.__version_info__ and jax.version.__version__ == jax.__version__
assert importlib.import_module("jax.nn") is jax.nn and importlib.reload(jax) is jax
space = {}
exec("from jax.numpy import *", space)
assert space["sin"] is handlax.numpy.sin
print(jax.numpy)""") == "<module 'jax.numpy' (handlax behind as_jax, handlax.numpy)>"


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in NAMES.items() for name in names])
def test_a_name_of_the_table_is_the_one_where_it_stands(module, name):
    place, _, attribute = NAMES[module][name].partition(":")
    view = View(module)
    assert getattr(view, name) is getattr(import_module(place), attribute) and name in dir(view)


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in ABSENT.items() for name in names])
def test_of_what_is_absent_there_are_objects_without_attributes(module, name):
    made = getattr(View(module), name)(1, kind=2)
    with pytest.raises(AttributeError, match=f"handlax, behind as_jax, has no {module}.{name}"):
        made.value


def test_a_missing_name_is_missing_by_an_error_that_says_so():
    assert shown("""
import jax
caught = []
for program in ("jax.no_such", "jax.effects", "jax.numpy._np", "import jax.no_such", "from jax import no_such",
                "from jax.interpreters import pxla; pxla.no_such", "from jax.numpy import no_such",
                "import jax._src.no_such"):
    try:
        exec(program)
    except (AttributeError, ImportError) as error:
        assert "handlax, behind as_jax, has no" in str(error), error
        caught.append(type(error).__name__)
assert not hasattr(jax, "no_such")
print(*caught)""") == "AttributeError " * 3 + "MissingModule MissingModule AttributeError MissingModule MissingModule"


def test_an_assigned_name_is_found_by_every_importer_and_can_be_taken_back():
    assert shown("""
from unittest import mock
import pytest, jax, jax.numpy as jnp
instead = lambda x: "instead"
jnp.sin = instead
from jax.numpy import sin
assert sin is instead and jax.numpy.sin is instead and importlib.import_module("jax.numpy").sin is instead
assert handlax.numpy.sin is not instead
del jnp.sin
assert jnp.sin is handlax.numpy.sin
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(jax, "jit", instead)
    patch.setattr("jax.numpy.cos", instead)
    assert jax.jit is instead and jnp.cos is instead
assert jax.jit is handlax.jit and jnp.cos is handlax.numpy.cos
with mock.patch("jax.lax.scan", instead):
    from jax import lax
    assert lax.scan is instead
print(lax.scan is handlax.lax.scan)""") == "True"


def test_64_bits_are_off_unless_they_are_asked_for():
    program = START + "import jax, numpy; print(jax.config.jax_enable_x64, jax.numpy.asarray(numpy.ones(2)).dtype)"
    assert in_new_process(program) == "False float32"
    assert in_new_process(program, JAX_ENABLE_X64="1") == "True float64"


FAKE = "import sys, types; sys.modules['jax'] = types.ModuleType('jax'); import handlax.as_jax; "


def test_jax_itself_beside_it_is_refused_in_three_lines():
    assert in_new_process(FAKE + """
try:
    handlax.as_jax.install()
except ImportError as error:
    print(str(error).count(chr(10)), type(error).__name__, handlax.as_jax.is_installed())""") == "2 JaxIsLoaded False"
    assert shown("""
import types
sys.modules["jax"] = types.ModuleType("jax")
sys.modules["jax"].__path__ = []
try:
    import jax.numpy
except ImportError as error:
    print(str(error).count(chr(10)), type(error).__name__)""") == "2 JaxIsLoaded"


@pytest.mark.peer
def test_jax_that_is_imported_first_is_refused_and_that_is_installed_is_never_imported():
    assert in_new_process("""
import jax, handlax.as_jax
try:
    handlax.as_jax.install()
except ImportError as error:
    print(type(error).__name__)""") == "JaxIsLoaded"
    assert shown("import jax; print(jax.jit is handlax.jit, 'jax._src' in sys.modules)") == "True False"


def test_a_private_name_is_replaced_where_it_stands_and_taken_back():
    assert shown("""
from unittest import mock
from jax._src import compiler
from handlax.lowering.xla import executables
before, compiled = executables.backend_compile_and_load, []
def counted(backend, *args, **kwargs):
    compiled.append(backend.platform)
    return before(backend, *args, **kwargs)
compiler.backend_compile_and_load = counted
import jax
jax.jit(lambda x: x * 2)(1.0)
compiler.backend_compile_and_load = before
print(executables.backend_compile_and_load is before, {*compiled})""") == "True {'cpu'}"


def test_a_library_that_excludes_itself_is_not_named_as_the_user():
    assert shown("""
import types
library = compile('def double(x): return x @ x', '/libraries/doubled.py', 'exec')
space = {}
exec(library, space)
def refused():
    try:
        space["double"](handlax.numpy.ones((2, 3)))
    except handlax.errors.HandlaxError as error:
        return "doubled.py" in error.where
before = refused()
from jax._src import traceback_util
traceback_util.register_exclusion("/libraries/doubled.py")
print(before, refused())""") == "True False"


def test_jaxlib_works_behind_views_as_without_them():
    assert shown("""
import jax, numpy as np
x = jax.dlpack.from_dlpack(np.arange(3.0, dtype=np.float32))
assert sys.modules["jax"] is jax and jax.numpy.from_dlpack(x).tolist() == x.tolist()
print(jax.jit(lambda x: x + 1)(x).tolist(), sys.modules["jax"] is jax)""") == "[1.0, 2.0, 3.0] True"


def test_a_class_that_is_only_taken_by_an_import_says_that_it_is_missing_where_it_is_used():
    assert shown("""
from jax.experimental import hijax
class Mine(hijax.MutableHiType):
    method = hijax.aval_method(len)
said = []
for use in (lambda: Mine().shape, lambda: Mine.method.fun, lambda: hijax.AvalQDD(1, 2).aval):
    try:
        use()
    except AttributeError as error:
        assert "handlax, behind as_jax, has no jax.experimental.hijax." in str(error), error
        said.append(str(error).rpartition(".")[0].rpartition(".")[2])
print(*said, hasattr(hijax.AvalQDD(), "shape"), hasattr(hijax, "HiPrimitive"))""") == (
        "MutableHiType aval_method AvalQDD False True")
