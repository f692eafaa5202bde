"""The source of the repository as syntax: which files there are, what they import, which classes they define."""

import ast
import gc
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("effects", "interpreters", "lowering", "handlax")   # each may import those before it
FOLDERS = (*LAYERS, "tests", "benchmarks", "examples", "docs", "tools")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
PACKAGE = [file for file in FILES if file.relative_to(ROOT).parts[0] in LAYERS]


CLASS_NAME = re.compile(r"_?[A-Z]\w*[a-z]\w*$")        # constants are written in capitals alone


def name(file: Path) -> str:
    """Give the path of a file from the root of the repository."""
    return file.relative_to(ROOT).as_posix()


def folder(file: Path) -> str:
    """Give the path of the folder of ``file``, from the root of the repository."""
    return name(file.parent)


@cache
def _trees() -> dict[Path, ast.Module]:
    """The syntax of all files, a million objects, over which the garbage collector never passes."""
    gc.collect()
    gc.disable()
    trees = {file: ast.parse(file.read_text(), str(file)) for file in FILES}
    gc.freeze()
    gc.enable()
    return trees


def tree(file: Path) -> ast.Module:
    return _trees()[file] if file in _trees() else ast.parse(file.read_text(), str(file))


@cache
def nodes(root: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a syntax tree; kept, as a dozen checks ask for those of all files."""
    return tuple(ast.walk(root))


def last_word(called: ast.expr) -> str:
    """What is called, without what it is an attribute of."""
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def package_of(file: Path, root: Path = ROOT) -> list[str]:
    """Give the components of the name of the package of ``file``."""
    layer, *folders = file.relative_to(root).parts[:-1]
    return ["handlax", *([] if layer == "handlax" else [layer]), *folders]


def module_name(file: Path, root: Path = ROOT) -> str:
    """Give the name under which ``file`` is imported; an ``__init__.py`` is its package."""
    return ".".join(package_of(file, root) + ([] if file.stem == "__init__" else [file.stem]))


def modules(files: Iterable[Path]) -> dict[str, str]:
    """Give the folder of every module by its absolute name; a package is in the folder of its ``__init__.py``."""
    return {module_name(file): folder(file) for file in files}


def imported_by(node: ast.AST, package: list[str]) -> Iterator[str]:
    """Give the absolute names that one statement imports; ``from x import y`` gives ``x.y``."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        start = package[:len(package) - node.level + 1] if node.level else []
        yield from (".".join([*start, *filter(None, [node.module]), alias.name]) for alias in node.names)
    elif isinstance(node, ast.Call):
        first = node.args[0] if node.args else None
        late = last_word(node.func) in {"import_module", "late_module", "__import__", "importorskip"}
        if late and isinstance(first, ast.Constant):
            yield str(first.value)


def imports(root: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """Give the line and the absolute name of everything imported anywhere in a file."""
    for node in nodes(root):
        for imported in imported_by(node, package):
            yield node.lineno, imported


def module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Give the statements of a module that are in no function or class, those under ``if`` and ``try`` included."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from module_level([*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])])
            for handler in getattr(node, "handlers", []):
                yield from module_level(handler.body)


def type_variable(node: ast.expr) -> bool:
    """Say whether an expression is ``TypeVar(...)`` or one of its like."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {"TypeVar", "TypeVarTuple", "ParamSpec"}


def classes(module: ast.Module) -> Iterator[str]:
    """Give the names of the classes and type aliases defined at module level, those made by a call included.

    An alias is a name in the manner of classes that is assigned anything but a type variable.
    """
    for node in module_level(module.body):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value and not type_variable(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            words = [target.id for target in targets if isinstance(target, ast.Name)]
            yield from (word for word in words if CLASS_NAME.match(word))
