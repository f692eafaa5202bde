"""What checkers of types read in the class of arrays is installed on it, name by name and argument by argument."""

import inspect
import typing
from pathlib import Path

import pytest

from handlax.effects.core import array_interface
from handlax.effects.core.array_interface import Array
from handlax.effects.core.arrays import Box, ConcreteArray
from handlax.numpy.arrays.index_updates import IndexUpdateHelper, IndexUpdateRef

OF_CLASSES = {"__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__firstlineno__",
              "__static_attributes__"}
REFUSED = {"__setitem__"}          # it is there to raise, which a checker tells before


@pytest.fixture(scope="module")
def declared():
    """Give the module as a checker reads it: its source, run with ``TYPE_CHECKING``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typing, "TYPE_CHECKING", True)
        names = {"__name__": array_interface.__name__, "__package__": array_interface.__package__}
        exec(Path(array_interface.__file__).read_text(), names)
    return names


def parameters(function):
    """Give name, kind and default of each parameter but the first."""
    found = list(inspect.signature(function).parameters.values())[1:]
    return [(p.name, p.kind, p.default) for p in found]


def assert_declared_as(declaration, function):
    """Compare the parameters of a declared method with those of the installed one; properties are properties."""
    assert isinstance(declaration, property) == isinstance(function, property)
    if not isinstance(function, property) and callable(function):
        assert parameters(declaration) == parameters(function), declaration.__name__


def test_all_operators_and_methods_are_declared(declared):
    said = set(vars(declared["Array"])) - OF_CLASSES
    there = set(vars(Array)) - OF_CLASSES - REFUSED
    assert len(there) > 90 and there <= said
    for name in there:
        assert_declared_as(vars(declared["Array"])[name], vars(Array)[name])


def test_what_concrete_arrays_alone_can_do_is_declared(declared):
    further = set(vars(declared["Array"])) - OF_CLASSES - set(vars(Array))
    assert {"__index__", "__iter__", "is_deleted"} <= further
    for name in further:
        assert_declared_as(vars(declared["Array"])[name], inspect.getattr_static(ConcreteArray, name))
        if name in vars(Box):
            assert_declared_as(vars(declared["Array"])[name], vars(Box)[name])
    public = {name for name in vars(ConcreteArray) if name[0] != "_"} - {"value", "buffer"}
    assert public - set(dir(declared["Array"])) == set()


def test_methods_of_at_are_declared(declared):
    updates, at = declared["Updates"], declared["Updatable"]
    attached = {name for name in vars(IndexUpdateRef) if name[0] != "_"} - {"array", "index"}
    alike = set(updates.__annotations__)
    assert attached == alike | {name for name in vars(updates) if name[0] != "_"}
    for name in attached:
        declaration = declared["Update"].__call__ if name in alike else vars(updates)[name]
        assert_declared_as(declaration, vars(IndexUpdateRef)[name])
    assert_declared_as(at.__getitem__, IndexUpdateHelper.__getitem__)


def test_a_declaration_that_differs_is_found():
    with pytest.raises(AssertionError):
        assert_declared_as(lambda self, axis=None: None, lambda a, axis=0: None)
    with pytest.raises(AssertionError):
        assert_declared_as(lambda self: None, property(lambda self: None))
