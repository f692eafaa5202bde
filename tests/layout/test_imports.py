"""What a file may import, and where the import stands, read from the source alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.package_source import FILES, LAYERS, PACKAGE, ROOT, imported_by, imports, name, nodes, package_of, tree

JAXLIB_MODULES = "handlax.lowering.clients.jaxlib_modules"
JAXLIB_FILES = {"effects/trees/cpp_pytrees.py", "effects/trees/path_keys.py", *[f"lowering/{module}.py" for module in (
    "clients/jaxlib_modules", "clients/platforms", "clients/processes", "clients/coordinator", "clients/joint_actions",
    "xla/jaxlib_runtime", "xla/buffer_types", "xla/buffers", "xla/executables", "xla/mlir_bindings", "xla/mlir_modules",
    "xla/dlpack", "xla/jax_import_guard", "xla/profiler", "clients/runtime_classes",
    "clients/foreign_targets",
)]}


def layer_of(imported: str) -> str | None:
    """Give the layer of an absolute name: ``handlax.effects.types`` is in effects, ``handlax.lax`` in handlax."""
    root, *rest = imported.split(".")
    if root != "handlax":
        return None
    return rest[0] if rest and rest[0] in LAYERS else "handlax"


def upward_imports(root: ast.AST, package: list[str], layer: str) -> list[tuple[int, str]]:
    below = LAYERS[:LAYERS.index(layer) + 1]
    return [(line, imported) for line, imported in imports(root, package) if layer_of(imported) not in (None, *below)]


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Give the statements at the top of a file, with those under ``if TYPE_CHECKING``."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from node.body
        else:
            yield node


def nested_imports(module: ast.Module, file: str) -> list[str]:
    """Give the imports that are not at the top, except those of jaxlib, which half of the programs never need."""
    top = set(top_level(module.body))
    nested = []
    for node in nodes(module):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in top:
            for imported in imported_by(node, []):
                if imported.split(".")[0] != "jaxlib" or file not in JAXLIB_FILES:
                    nested.append(f"{file}:{node.lineno} imports {imported} inside a function or block")
    return nested


def marked_peer(node: ast.AST) -> bool:
    """Say whether a test, or a file by its ``pytestmark``, carries the mark ``peer``."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return any("mark.peer" in ast.unparse(decorator) for decorator in node.decorator_list)
    if isinstance(node, ast.Module):
        marks = [ast.unparse(line) for line in node.body if isinstance(line, ast.Assign)]
        return any(mark.startswith("pytestmark") and "mark.peer" in mark for mark in marks)
    return False


def jax_imports(module: ast.Module) -> list[int]:
    """Give the lines that import jax outside what is marked ``peer``."""
    found = [node for node in nodes(module) if any(name.split(".")[0] == "jax" for name in imported_by(node, []))]
    peers = {inner for node in nodes(module) if marked_peer(node) for inner in ast.walk(node)} if found else set()
    return [node.lineno for node in found if node not in peers]


def test_imports_go_from_effects_to_interpreters_to_lowering_to_handlax():
    assert not [f"{name(file)}:{line} imports {imported}" for file in PACKAGE
                for line, imported in upward_imports(tree(file), package_of(file), file.relative_to(ROOT).parts[0])]


def calls_jaxlib(root: ast.AST, package: list[str]) -> bool:
    """Say whether a file imports jaxlib, or the module that hands on jaxlib's modules."""
    return any(imported.split(".")[0] == "jaxlib" or f"{imported}.".startswith(f"{JAXLIB_MODULES}.")
               for _, imported in imports(root, package))


def test_jaxlib_is_called_by_the_files_of_its_runtime_alone():
    assert {name(file) for file in PACKAGE if calls_jaxlib(tree(file), package_of(file))} == JAXLIB_FILES


def records_a_peer(file: Path) -> bool:
    """Say whether a file is no test but a program that records another library's results, or works with both."""
    folder, *inner = file.relative_to(ROOT).parts
    both = folder == "benchmarks" or (folder == "tools" and "library_cases" in inner[0]) or inner[0] == "interop"
    return both or (folder in ("tests", "tools") and file.name.startswith("record"))


def test_jax_is_imported_by_benchmarks_recorders_and_peer_tests_alone():
    assert not [f"{name(file)}:{line}" for file in FILES if not records_a_peer(file)
                for line in jax_imports(tree(file))]


def test_imports_stand_at_the_top_of_the_file():
    assert not [mistake for file in PACKAGE for mistake in nested_imports(tree(file), name(file))]


def test_no_file_imports_a_folder_by_its_name_in_the_repository():
    roots = {*LAYERS} - {"handlax"}
    assert not [f"{name(file)}:{line} imports {imported}" for file in FILES
                for line, imported in imports(tree(file), package_of(file)) if imported.split(".")[0] in roots]


# The checks above hold of an empty tree too, so each is shown a mistake that it must find.

@pytest.mark.parametrize(("layer", "package", "source", "found"), [
    ("effects", ["handlax", "effects"], "from ..interpreters import jvp", True),
    ("effects", ["handlax", "effects"], "from .. import lowering", True),
    ("effects", ["handlax", "effects"], "from ..numpy import sum", True),
    ("effects", ["handlax", "effects"], "import handlax", True),
    ("effects", ["handlax", "effects"], "def f():\n    from handlax.lowering.jit.jit import jit", True),
    ("effects", ["handlax", "effects"], "from .types import ArrayType", False),
    ("lowering", ["handlax", "lowering"], "from ..interpreters.library import state", False),
    ("handlax", ["handlax", "numpy"], "from ...handlax.lowering import jit", False),
    ("interpreters", ["handlax", "interpreters", "library"], "from ...lowering import jit", True),
    ("interpreters", ["handlax", "interpreters", "library"], "from ...effects import types", False),
])
def test_an_upward_import_is_found(layer, package, source, found):
    assert bool(upward_imports(ast.parse(source), package, layer)) == found


@pytest.mark.parametrize(("file", "source", "found"), [
    ("effects/types/array_type.py", "def f():\n    import numpy", True),
    ("effects/types/array_type.py", "try:\n    import numpy\nexcept ImportError:\n    pass", True),
    ("effects/types/array_type.py", "import numpy\nif TYPE_CHECKING:\n    import os", False),
    ("lowering/compile/emitter.py", "def f():\n    import jaxlib", True),
    ("lowering/clients/platforms.py", "def f():\n    from jaxlib import xla_client", False),
    ("lowering/linalg.py", "def f():\n    import scipy.linalg", True),
])
def test_an_import_inside_a_function_is_found(file, source, found):
    assert bool(nested_imports(ast.parse(source), file)) == found


@pytest.mark.parametrize(("source", "found"), [
    ("import jaxlib.version", True),
    ("def f():\n    from jaxlib import _jax", True),
    ("from .jaxlib_modules import xc", True),
    ("from . import jaxlib_modules", True),
    ("from .jaxlib_runtime import put", False),
])
def test_a_call_of_jaxlib_is_found(source, found):
    assert calls_jaxlib(ast.parse(source), ["handlax", "lowering", "clients"]) == found


@pytest.mark.parametrize(("source", "found"), [
    ("import jax", True),
    ("def test_f():\n    jax = pytest.importorskip('jax')", True),
    ("from jax.numpy import sin", True),
    ("import jaxlib", False),
    ("@pytest.mark.peer\ndef test_f():\n    import jax", False),
    ("pytestmark = pytest.mark.peer\njax = pytest.importorskip('jax')", False),
])
def test_an_import_of_jax_is_found(source, found):
    assert bool(jax_imports(ast.parse(source))) == found
