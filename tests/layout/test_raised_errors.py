"""What the package raises is a class of hx.errors, read from the source alone."""

import ast
import builtins

import pytest
from helpers.package_source import PACKAGE, name, nodes, tree

# Errors that the caller in the package makes others of, and those that a protocol, or Python's own calls, prescribe.
INNER = {
    "effects/programs/literals.py": "ValueError", "effects/control/debug_callbacks.py": "LookupError",
    "lowering/xla/host_callbacks.py": "RuntimeError", "effects/base/deep_calls.py": "RecursionError",
    "effects/core/array_exchange.py": ("BufferError", "AttributeError"),
    "lowering/xla/dlpack.py": "BufferError", "lowering/xla/array_backend.py": "BufferError",
    "handlax/extend/rule_registries.py": "KeyError",
}


def bare_errors(module: ast.Module) -> list[str]:
    """Give the assertions, and the lines that raise an exception of Python's own, outside ``__getattr__``."""
    functions = [node for node in nodes(module) if isinstance(node, ast.FunctionDef)]
    free = {node for f in functions if f.name == "__getattr__" for node in ast.walk(f)}
    found = []
    for node in nodes(module):
        if isinstance(node, ast.Assert):
            found.append(f"{node.lineno} asserts")
        if isinstance(node, ast.Raise) and node not in free and isinstance(node.exc, ast.Call):
            kind = ast.unparse(node.exc.func)
            if isinstance(getattr(builtins, kind, None), type):
                found.append(f"{node.lineno} raises {kind}")
    return found


def test_a_mistake_is_told_by_a_class_of_errors():
    assert not [f"{name(file)}:{place}" for file in PACKAGE if "testing" not in file.parts
                for place in bare_errors(tree(file)) if not place.endswith(INNER.get(name(file), " "))]


@pytest.mark.parametrize(("source", "found"), [
    ("assert x", True),
    ("def f():\n    raise IndexError('x')", True),
    ("def __getattr__(name):\n    raise AttributeError(name)", False),
    ("raise BadIndex('x')", False),
    ("try:\n    f()\nexcept ValueError:\n    raise", False),
])
def test_a_bare_error_is_found(source, found):
    assert bool(bare_errors(ast.parse(source))) == found
