"""Modules imported at first use, and which ones ``import handlax`` leaves for then."""

import inspect
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from helpers.other_threads import OtherThread

from handlax.effects.base.lazy_module import LazyModule, late_module, late_names

# what serves ragged arrays, texts of programs, chapters of mathematics, several processes, a cache on disk
LATER = (
    "handlax.interpreters.ragged", "handlax.effects.programs.parser", "handlax.effects.programs.diff",
    "handlax.effects.operations.special", "handlax.effects.operations.linalg", "handlax.effects.operations.windows",
    "handlax.effects.operations.fft", "handlax.effects.operations.reductions.generic_reduce",
    "handlax.effects.operations.reductions.softmax", "handlax.lowering.xla.disk_cache", "handlax.lax", "handlax.nn",
    "jaxlib", "numpy.ma", "scipy", "difflib", "fractions", "returns", "socket", "tempfile",
)

PROGRAM = """
import sys
import handlax as hx
{use}
print(*[name for name in sys.argv[1:] if name in sys.modules])
"""


def loaded(use: str) -> list[str]:
    """Give the modules of LATER that a program has loaded."""
    code = [sys.executable, "-P", "-c", PROGRAM.format(use=use), *LATER]
    return subprocess.run(code, capture_output=True, text=True, check=True, timeout=300).stdout.split()


def test_inspection_does_not_import_the_module():
    nowhere = LazyModule("no_such_module")
    assert inspect.unwrap(nowhere) is nowhere and not hasattr(nowhere, "__file__")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        nowhere.name


def test_the_module_is_imported_when_a_name_of_it_is_used():
    fractions = LazyModule("fractions")
    assert fractions.__dict__ == {"_name": "fractions"}
    assert fractions.Fraction(1, 2) == 0.5
    assert "Fraction" in fractions.__dict__
    with pytest.raises(AttributeError, match="Fractoin"):
        fractions.Fractoin


@pytest.fixture
def package(request, tmp_path, monkeypatch):
    """The name of a package of this text, with a module ``inner`` whose ``value`` is 7."""
    folder = tmp_path / "package_of_this_test"
    folder.mkdir()
    (folder / "__init__.py").write_text(request.param)
    (folder / "inner.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder.name
    for name in (folder.name, f"{folder.name}.inner"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("package", ["import time\ntime.sleep(0.1)\nfrom .inner import value\n"], indirect=True)
def test_threads_that_need_a_package_and_a_module_of_it_wait_for_one_another(package):
    outer = OtherThread(late_module, package)
    while package not in sys.modules and outer.is_alive():
        time.sleep(0.001)
    inner = OtherThread(late_module, f"{package}.inner")
    assert outer.result().value == inner.result().value == 7


WITH_LATE_NAMES = """
import typing as _typing
from handlax.effects.base.lazy_module import late_names as _late_names
early = 1
_early = 2
if _typing.TYPE_CHECKING:
    from . import inner as inner
    from .inner import (
        value as value,
    )
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
"""


@pytest.mark.parametrize("package", [WITH_LATE_NAMES], indirect=True)
def test_names_that_type_checkers_see_are_imported_when_asked_for(package):
    module = late_module(package)
    assert module.__all__ == ["early", "inner", "value"]
    assert {"early", "_early", "inner", "value"} <= {*dir(module)} and "value" not in vars(module)
    assert module.value == vars(module)["value"] == module.inner.value == 7
    with pytest.raises(AttributeError, match="'package_of_this_test' has no attribute 'other'"):
        module.other


class WithoutSource(SourceFileLoader):
    """A loader that cannot tell the source of a module, as those of hooks that rewrite modules."""

    get_source = None


@pytest.mark.parametrize("package", [WITH_LATE_NAMES], indirect=True)
def test_late_names_are_found_whatever_loads_the_package(package, tmp_path):
    place = tmp_path / package / "__init__.py"
    spec = spec_from_file_location(package, place, loader=WithoutSource(package, str(place)))
    sys.modules[package] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[package])
    assert sys.modules[package].value == 7


@pytest.mark.parametrize("package", ["early = 1\n"], indirect=True)
def test_a_package_without_a_block_for_type_checkers_has_no_late_names(package):
    module = late_module(package)
    get, listed, public = late_names(package)
    assert public == ["early"] and {*listed()} == {*vars(module)}
    with pytest.raises(AttributeError, match="'package_of_this_test' has no attribute 'inner'"):
        get("inner")


def test_importing_the_package_loads_none_of_what_most_programs_do_not_need():
    assert loaded("") == []


def test_nor_do_functions_of_arrays():
    assert loaded("hx.numpy.tanh(hx.numpy.ones((2, 2)) @ hx.numpy.arange(2.0)).sum()") == []


@pytest.mark.parametrize("use", [
    "hx.vmap(hx.grad(f))(x[None]), hx.jacfwd(f)(x), hx.make_program(f)(x), hx.jvp(f, (x,), (x,))",
    "hx.jit(hx.value_and_grad(f))(x)",
])
def test_transformations_load_jaxlib_alone(use):
    assert loaded(f"f, x = lambda x: hx.numpy.tanh(x @ x).sum(), hx.numpy.ones((2, 2)); {use}") == ["jaxlib"]


@pytest.mark.parametrize("use", [
    "hx.vmap(lambda x: x.sum(), in_axes=hx.ragged_axis)(hx.Ragged(hx.numpy.ones(3), (2, 1)))",
    "hx.columns.ragged",
    "hx.explain_rules(hx.operations.ReduceSum)",
])
def test_rules_of_ragged_arrays_are_all_loaded_with_the_first_use(use):
    assert {"handlax.interpreters.ragged", "handlax.effects.operations.reductions.generic_reduce"} <= {*loaded(use)}
