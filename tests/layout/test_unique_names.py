"""One name, one thing: the name of a class or type occurs once in the package, a module name once in its layer."""

import ast
from collections import defaultdict
from collections.abc import Iterable

import pytest
from helpers.package_source import PACKAGE, classes, name, tree

# Modules that share their name with another of their layer, with the reason.
SAME_MODULE_NAME = {
    "handlax/__main__.py": "what ``python -m`` executes",
    "handlax/as_jax/__main__.py": "what ``python -m`` executes",
    "handlax/testing/fuzzing/__main__.py": "what ``python -m`` executes",
    "handlax/launch/__main__.py": "what ``python -m`` executes",
    "handlax/testing/mutants/__main__.py": "what ``python -m`` executes",
    "handlax/ad.py": "public under JAX's name, handlax.ad",
    "handlax/extend/ad.py": "public under JAX's name, handlax.extend.ad",
    "handlax/numpy/fft.py": "public under NumPy's name, handlax.numpy.fft",
    "handlax/scipy/fft.py": "public under SciPy's name, handlax.scipy.fft",
    "handlax/experimental/sparse/linalg.py": "public under JAX's name, handlax.experimental.sparse.linalg",
    "handlax/scipy/sparse/linalg.py": "public under SciPy's name, handlax.scipy.sparse.linalg",
}


def repeated(names: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Give the names that occur in several places, with these; ``names`` are pairs of a name and its place."""
    places = defaultdict(list)
    for word, place in names:
        places[word].append(place)
    return {word: found for word, found in sorted(places.items()) if len(found) > 1}


def module_names(files: Iterable[str]) -> list[tuple[str, str]]:
    """Pair every module's name, after that of its layer, with its path; folders are not counted."""
    paths = [file for file in files if not file.endswith("/__init__.py")]
    return [(f"{file.split('/')[0]}: {file.rpartition('/')[2].removesuffix('.py')}", file) for file in paths]


def test_a_class_name_occurs_once_in_the_package():
    assert not repeated((found, name(file)) for file in PACKAGE for found in classes(tree(file)))


def test_a_module_name_occurs_once_in_its_layer():
    assert not repeated(module_names(name(file) for file in PACKAGE if name(file) not in SAME_MODULE_NAME))


def test_the_modules_of_equal_names_are_there_and_are_equal():
    listed = {file for files in repeated(module_names(map(name, PACKAGE))).values() for file in files}
    assert set(SAME_MODULE_NAME) <= listed


# The checks above hold of an empty tree too, so each is shown a mistake that it must find.

@pytest.mark.parametrize(("sources", "found"), [
    (["class A: ...", "class A: ..."], True),
    (["class A: ...", "if x:\n    class A: ..."], True),
    (["class A: ...", "try:\n    pass\nexcept E:\n    class A: ..."], True),
    (["class A: ...", "class B:\n    class A: ..."], False),
    (["class A: ...", "def f():\n    class A: ..."], False),
    (["class A: ...", "class B(A): ..."], False),
    (["class Aa: ...", "Aa = NamedTuple('Aa', [('x', int)])"], True),
    (["class Aa: ...", "Aa = type('Aa', (), {})"], True),
    (["class Aa: ...", "Aa = tuple[int, ...]"], True),
    (["class Aa: ...", "Aa: TypeAlias = Any"], True),
    (["Aa = tuple[int, ...]", "if x:\n    Aa = Callable[..., Any]"], True),
    (["class _Aa: ...", "_Aa = Callable[..., Any]"], True),
    (["AA = tuple[int, ...]", "AA = 3"], False),
    (["Ts = TypeVarTuple('Ts')", "Ts = TypeVarTuple('Ts')"], False),
    (["Aa: int", "class Aa: ..."], False),
    (["Aa = int", "x.Aa = int"], False),
])
def test_a_class_name_that_occurs_again_is_found(sources, found):
    assert bool(repeated((a, str(i)) for i, source in enumerate(sources) for a in classes(ast.parse(source)))) == found


@pytest.mark.parametrize(("files", "found"), [
    (["effects/base/a.py", "effects/core/a.py"], True),
    (["effects/base/a.py", "interpreters/core/a.py"], False),
    (["effects/a/__init__.py", "effects/b/__init__.py"], False),
    (["lowering/jit/jit.py", "lowering/jit/__init__.py"], False),
])
def test_a_module_name_that_occurs_again_is_found(files, found):
    assert bool(repeated(module_names(files))) == found
