"""The page of all caches, read off the source: the name, the bound, the place, and the sentence that stands there."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Container, Iterator
from importlib import import_module
from pathlib import Path

import handlax

ROOT = Path(handlax.__file__).resolve().parent.parent
LAYERS = ("effects", "interpreters", "lowering", "handlax")
HEADER = """# Caches

Every cache is bounded, counted in `hx.cache_info()` and emptied by `hx.clear_caches()`.
What is attached to an object goes with the object, too.

| name in `cache_info()` | bound | place | holds |
| --- | --- | --- | --- |
"""


def named(node: ast.AST, known: Container[str]) -> str | None:
    """The name of the cache that an expression makes, or None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call):  # cached(name)(function)
        node = node.func
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return first.value if isinstance(first, ast.Constant) and first.value in known else None


def caches(body: list[ast.stmt], known: Container[str]) -> Iterator[tuple[str, str, str]]:
    """Of each of the caches ``known`` in a module: its name, what it is called there, and the sentence."""
    for node, after in zip(body, [*body[1:], ast.Pass()]):
        if isinstance(node, ast.FunctionDef):
            for name in filter(None, [named(decorator, known) for decorator in node.decorator_list]):
                yield name, node.name, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign) and (name := named(node.value, known)):
            text = after.value if isinstance(after, ast.Expr) else None
            yield name, ast.unparse(node.targets[0]), str(text.value) if isinstance(text, ast.Constant) else ""


def page() -> str:
    """The text of the page."""
    for module in pkgutil.walk_packages(handlax.__path__, "handlax."):
        import_module(module.name)
    bounds, rows = handlax.cache_info(), []
    for path in sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")):
        for name, called, text in caches(ast.parse(path.read_text()).body, bounds):
            place = f"[`{path.name}: {called}`](../../{path.relative_to(ROOT).as_posix()})"
            sentence = " ".join(text.split("\n\n")[0].partition("Raises")[0].split()).replace("``", "`")
            rows.append(f"| `{name}` | {bounds[name].capacity} | {place} | {sentence} |\n")
    return HEADER + "".join(rows)
