"""The tests mirror the package: a module is tested in the file of its name, or the list says where."""

import ast
from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest
from helpers.package_source import FILES, LAYERS, PACKAGE, ROOT, imports, module_name, name, nodes, tree
from layout.tested_elsewhere import TESTED_ELSEWHERE

# What is about no one module has a folder of its own.
FOLDERS = {
    "beside_jax": "what is compared with JAX, where it is installed",
    "docs": "the examples of pages, of docstrings and of examples/ run",
    "errors": "mistakes of users, and what they are told",
    "fuzz_targets": "what ``make fuzz`` tries, and what it has found, tried again",
    "gpu": "what a GPU computes, beside NumPy and the CPU",
    "golden": "calls recorded with JAX",
    "helpers": "what several test files use",
    "laws": "what holds of every operation, and of every nest of transformations",
    "layout": "the order of files, folders and imports, read from the source",
    "programs": "whole programs with their recorded results",
    "public_interface": "names, signatures, immutability",
    "typing": "programs that checkers of types accept or refuse, and what they are told of public functions",
    "threads": "threads and tasks at work at once",
}


# Blocks whose operations the laws do not reach, with the reason.
WITHOUT_INPUTS = {
    "handlax.effects.operations.collectives.collective": "it names an axis, and means nothing outside of what binds it",
    "handlax.effects.operations.collectives.host_local": "it moves data between processes",
    "handlax.effects.operations.indexing.scatter_functions": "a scatter by any function, a program of the caller",
}


def own_test(module: str) -> str:
    """Give the path of the test file of a module."""
    path = PurePosixPath("tests", module)
    return str(path.with_name(f"test_{path.name}"))


def listed(module: str, reasons: Iterable[str]) -> str | None:
    """Give the entry under which a module is listed: itself, or the nearest listed folder.

    A layer is listed for its own files alone.
    """
    if module in reasons:
        return module
    for folder in PurePosixPath(module).parents:
        if f"{folder}/" in reasons and ("/" in str(folder) or module.count("/") == 1):
            return f"{folder}/"
    return None


def untested(modules: Iterable[str], tests: set[str], reasons: Iterable[str]) -> list[str]:
    """Give the modules that have neither a test file nor an entry in the list."""
    return [m for m in modules if own_test(m) not in tests and listed(m, reasons) is None]


def astray(tests: Iterable[str], modules: set[str]) -> list[str]:
    """Give the test files of layers that test no module.

    A test beside a folder of tests may test that folder as a whole, or an area of it: ``test_numpy_creation.py``.
    """
    folders = {str(folder) for module in modules for folder in PurePosixPath(module).parents}
    found = []
    for test in tests:
        path = PurePosixPath(test).relative_to("tests")
        words = path.stem.removeprefix("test_").split("_")
        whole = {str(path.with_name("_".join(words[:n]))) for n in range(1, len(words) + 1)}
        if str(path.with_name(path.name.removeprefix("test_"))) not in modules and not whole & folders:
            found.append(test)
    return found


def without_tests(module: ast.Module) -> bool:
    """Say whether a file defines no test: no function of a test, made here or by a law, and no class with one."""
    names = {node.name for node in nodes(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    made = {node.id for node in nodes(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return not any(word.startswith("test_") for word in names | made)


def declares_operations(module: ast.Module) -> bool:
    """Say whether a module declares first-order operations: classes under ``operation``, or calls ``elementwise``."""
    for node in module.body:
        marks = node.decorator_list if isinstance(node, ast.ClassDef) else []
        higher = isinstance(node, ast.ClassDef) and any("HigherOrder" in ast.unparse(base) for base in node.bases)
        made = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func)
        words = {ast.unparse(mark.func if isinstance(mark, ast.Call) else mark) for mark in marks}
        if not higher and ("operation" in words or made == "elementwise"):
            return True
    return False


def without_inputs(blocks: Iterable[str], imported: Iterable[str]) -> list[str]:
    """Give the modules, by absolute names, of which the inputs of the laws import neither them nor a name of theirs."""
    there = {*imported}
    there |= {word.rpartition(".")[0] for word in there}
    return [block for block in blocks if block not in there]


MODULES = {name(file) for file in PACKAGE if file.name != "__init__.py"}
TESTS = {name(file) for file in FILES if name(file).startswith("tests/") and file.name.startswith("test_")}
MIRRORED = {test for test in TESTS if test.split("/")[1] in LAYERS}


def test_every_module_has_its_test_file_or_a_reason():
    assert not untested(sorted(MODULES), TESTS, TESTED_ELSEWHERE)


def test_every_reason_is_needed_and_names_tests_that_exist():
    needed = {listed(module, TESTED_ELSEWHERE) for module in MODULES if own_test(module) not in TESTS}
    assert not set(TESTED_ELSEWHERE) - needed
    assert not [(place, test) for place, (tests, reason) in TESTED_ELSEWHERE.items() for test in tests
                if f"tests/{test}" not in TESTS or not reason]


def test_every_test_file_defines_a_test():
    assert not [test for test in sorted(TESTS) if without_tests(tree(ROOT / test))]


def test_every_block_of_operations_has_inputs_for_the_laws():
    blocks = {module_name(file): file for file in PACKAGE
              if name(file).startswith("effects/operations/") and declares_operations(tree(file))}
    assert len(blocks) > 15 and set(WITHOUT_INPUTS) <= set(blocks)
    imported = {word for file in FILES if name(file).startswith("tests/laws/inputs")
                for _, word in imports(tree(file), ["laws"])}
    assert set(without_inputs(blocks, imported)) == set(WITHOUT_INPUTS)


def test_every_test_file_of_a_layer_tests_a_module():
    assert not astray(sorted(MIRRORED), MODULES)


def test_every_other_test_has_a_folder():
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.rglob("*.py"))}
    assert folders == {*LAYERS, *FOLDERS}
    assert not [test for test in TESTS if test.count("/") == 1]


# The checks above hold of an empty tree too, so each is shown a mistake that it must find.

@pytest.mark.parametrize(("module", "found"), [
    ("effects/base/stack.py", False),
    ("effects/base/other.py", True),
    ("effects/core/one.py", False),
    ("effects/core/deeper/two.py", False),
    ("handlax/errors.py", False),
    ("handlax/new/errors.py", True),
])
def test_a_module_without_a_test_is_found(module, found):
    reasons = {"effects/base/stack.py", "effects/core/", "handlax/"}
    assert bool(untested([module], {"tests/effects/base/test_errors.py"}, reasons)) == found
    assert not untested([module], {own_test(module)}, reasons)


@pytest.mark.parametrize(("test", "found"), [
    ("tests/effects/base/test_stack.py", False),
    ("tests/effects/test_stack.py", True),
    ("tests/effects/base/test_stacks.py", True),
    ("tests/handlax/test_numpy.py", False),
    ("tests/handlax/test_numpy_creation.py", False),
    ("tests/handlax/test_numpyish.py", True),
])
def test_a_test_of_no_module_is_found(test, found):
    assert bool(astray([test], {"effects/base/stack.py", "handlax/numpy/creation.py"})) == found


@pytest.mark.parametrize(("source", "found"), [
    ("", True),
    ("def helper(): ...", True),
    ("import pytest\nTEST = 1", True),
    ("def test_a(): ...", False),
    ("test_a, test_b = law(CASES)", False),
    ("class TestA:\n    def test_a(self): ...", False),
])
def test_a_file_without_a_test_is_found(source, found):
    assert without_tests(ast.parse(source)) == found


@pytest.mark.parametrize(("source", "found"), [
    ("@operation\nclass A: ...", True),
    ("@operation(name='a')\nclass A(B): ...", True),
    ("A = elementwise('a', FLOATING, np.abs)", True),
    ("@operation\nclass A(HigherOrder): ...", False),
    ("class A: ...\nb = perform(A)", False),
])
def test_a_block_of_operations_is_found(source, found):
    assert declares_operations(ast.parse(source)) == found


@pytest.mark.parametrize(("imported", "found"), [
    (["handlax.effects.operations.new"], False),
    (["handlax.effects.operations.new.New"], False),
    (["handlax.effects.operations.newer.Newer", "handlax.effects.operations.linalg"], True),
])
def test_a_block_without_inputs_is_found(imported, found):
    assert bool(without_inputs(["handlax.effects.operations.new"], imported)) == found
