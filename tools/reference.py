"""Write docs/reference/: the public names of every namespace, each with parameters and a sentence; the matrix of rules.

And docs/errors/: a page for each class of errors.

    python tools/reference.py            write the pages
    python tools/reference.py --check    print which of them are out of date, and fail if there are any
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any, NewType

import cache_table
import error_pages
import rules_matrix

from handlax.extend import Column

DOCS = Path(__file__).resolve().parent.parent / "docs"
NAMESPACES = (
    "handlax", "handlax.lax", "handlax.lax.linalg", "handlax.numpy", "handlax.numpy.linalg", "handlax.numpy.fft",
    "handlax.nn", "handlax.nn.initializers", "handlax.random", "handlax.random.keyless", "handlax.library",
    "handlax.probability", "handlax.custom_derivatives", "handlax.custom_batching", "handlax.ad_checkpoint",
    "handlax.checkpoint_policies", "handlax.checkpoints", "handlax.core", "handlax.debug", "handlax.experimental",
    "handlax.experimental.array_serialization.serialization",
    "handlax.experimental.checkify", "handlax.experimental.compilation_cache.compilation_cache",
    "handlax.experimental.custom_partitioning", "handlax.experimental.jet", "handlax.experimental.mesh_utils",
    "handlax.sharding", "handlax.extend", "handlax.extend.ad", "handlax.extend.batching", "handlax.extend.mlir",
    "handlax.extend.partial_eval",
    "handlax.experimental.multihost_utils", "handlax.distributed", "handlax.launch", "handlax.as_jax",
    "handlax.interop.jax", "handlax.data",
    "handlax.tree", "handlax.tree_util", "handlax.dtypes", "handlax.columns", "handlax.errors", "handlax.testing",
    "handlax.testing.strategies",
    "handlax.testing.faults", "handlax.testing.fuzzing",
    "handlax.ops", "handlax.ref", "handlax.test_util", "handlax.flatten_util", "handlax.extend.core", "handlax.typing",
    "handlax.ad", "handlax.api_util", "handlax.scipy", "handlax.scipy.integrate", "handlax.scipy.fft",
    "handlax.stages", "handlax.dlpack", "handlax.ffi", "handlax.memory", "handlax.monitoring", "handlax.profiler",
    "handlax.export",
    "handlax.scipy.linalg",
    "handlax.scipy.special", "handlax.scipy.stats", "handlax.scipy.signal", "handlax.scipy.ndimage", "handlax.image",
    "handlax.scipy.optimize",
    "handlax.scipy.sparse.linalg",
    "handlax.scipy.cluster.vq", "handlax.scipy.spatial.transform",
    "handlax.scipy.interpolate",
    "handlax.experimental.ode", "handlax.experimental.serialize_executable",
    "handlax.experimental.sparse", "handlax.experimental.sparse.linalg",
    "handlax.example_libraries.optimizers",
    "handlax.example_libraries.stax",
)


def loaded(name: str) -> ModuleType | None:
    """A namespace by the name that users write, which may be an attribute instead of a module of that name."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for part in rest:
        if not hasattr(found, part):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except ModuleNotFoundError as error:
                if error.name != f"{found.__name__}.{part}":
                    raise
                return None
        found = getattr(found, part)
    return found if isinstance(found, ModuleType) and found.__file__ else None


def public_names(module: ModuleType) -> list[str]:
    """``__all__``, or the names that the source re-exports as ``import x as x`` and those that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    exported, defined = set(), set()
    for node in ast.parse(Path(str(module.__file__)).read_text()).body:
        if isinstance(node, ast.ImportFrom):
            if node.names[0].name == "*":
                source = importlib.util.resolve_name(f"{'.' * node.level}{node.module}", str(module.__package__))
                if source.startswith(f"{module.__name__}."):  # a file of the package says what it exports
                    exported |= {*importlib.import_module(source).__all__}
                values = vars(module).items()
                exported |= {name for name, value in values if getattr(value, "__module__", None) == source}
            exported |= {alias.asname for alias in node.names if alias.asname == alias.name.rpartition(".")[2]}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign):
            defined |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return sorted(name for name in exported | defined if not name.startswith("_"))


def default(value: Any) -> str:
    """A default value as a reader would write it."""
    if isinstance(value, type) or inspect.isfunction(value):
        return value.__name__
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def parameters(value: Any) -> str:
    """The parameters of a callable, without annotations; empty where Python has no signature."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parts: list[str] = []
    before: Any = None
    for parameter in signature.parameters.values():
        kind = parameter.kind
        if before is inspect.Parameter.POSITIONAL_ONLY and kind is not before:
            parts.append("/")
        if kind is inspect.Parameter.KEYWORD_ONLY and before not in (kind, inspect.Parameter.VAR_POSITIONAL):
            parts.append("*")
        star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(kind, "")
        value_text = "" if parameter.default is inspect.Parameter.empty else f"={default(parameter.default)}"
        parts.append(f"{star}{parameter.name}{value_text}")
        before = kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return f"({', '.join(parts)})"


_NOT_CALLED = (type, GenericAlias, NewType)  # what has no parameters to show


def sentence(value: Any) -> str:
    """The first paragraph of the docstring of a value, on one line; empty for plain values."""
    if isinstance(value, Column):
        return value.doc
    if isinstance(value, GenericAlias | NewType) or not (callable(value) or isinstance(value, ModuleType)):
        return ""
    return one_line(inspect.getdoc(value) or "")


def one_line(text: str) -> str:
    """The first paragraph of a text, on one line."""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


@cache
def statements(module: ModuleType) -> list[ast.stmt]:
    """The statements of a module, behind them those of its conditions."""
    body = ast.parse(Path(str(module.__file__)).read_text()).body
    return [*body, *[declared for node in body if isinstance(node, ast.If) for declared in node.body]]


def text_below(module: ModuleType, name: str) -> str:
    """The string below the assignment of a name, in the module from which it is imported; empty if there is none.

    What jaxlib defines has its text in the class that stands for it where types are checked.
    """
    body = statements(module)
    for node, below in zip(body, [*body[1:], None]):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_docstring(node) or ""
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                if (alias.asname or alias.name) in (name, "*"):
                    relative = "." * node.level + (node.module or "")
                    source = importlib.import_module(importlib.util.resolve_name(relative, str(module.__package__)))
                    if text := text_below(source, name if alias.name == "*" else alias.name):
                        return text
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if name in [part.id for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)]:
            match below:
                case ast.Expr(ast.Constant(str(text))):
                    return text
    return ""


def description(module: ModuleType, name: str) -> str:
    """What a public name is, in a sentence.

    Raises: LookupError: neither its docstring nor a string below its assignment says it.
    """
    value = getattr(module, name)
    text = sentence(value) or one_line(text_below(module, name))
    if not text and isinstance(value, ModuleType):
        text = f"The module `{value.__name__}`."
    if not text:
        raise LookupError(f"{module.__name__}.{name} has no docstring and no string below its assignment")
    return text


def entry(module: ModuleType, name: str) -> str:
    """One line of a page."""
    value = getattr(module, name)
    called = name + (parameters(value) if callable(value) and not isinstance(value, _NOT_CALLED) else "")
    return f"- `{called}`: {description(module, name)}"


def page(name: str, module: ModuleType) -> str:
    """The page of one namespace."""
    entries = [entry(module, public) for public in public_names(module)]
    return "\n".join([f"# {name}", "", sentence(module), "", *entries]) + "\n"


_LAYOUT = "layout.md"  # written by tools/architecture.py


def namespaces() -> dict[str, ModuleType]:
    """The public namespaces that have names of their own, by the name that users write."""
    return {name: module for name in NAMESPACES if (module := loaded(name)) is not None and public_names(module)}


def pages() -> dict[str, str]:
    """Path within docs -> text, for all of the reference and the errors."""
    modules = namespaces()
    texts = {f"{name}.md": page(name, module) for name, module in modules.items()}
    texts["caches.md"] = cache_table.page()
    texts["rules.md"] = rules_matrix.matrix().rstrip() + "\n"
    index = ["# Reference", "", "Made from the code by `python tools/reference.py`.", ""]
    index += [f"- [`{name}`]({name}.md): {sentence(module)}" for name, module in modules.items()]
    index += ["- [The matrix of rules](rules.md): which operation has a rule in which column, or why it has none."]
    index += [f"- [The layout]({_LAYOUT}): which folders there are, what lives in each and what it may import."]
    index += ["- [Caches](caches.md): which there are, their bounds, and what they hold."]
    index += ["- [Errors](../errors/index.md): each class, with its cause and its remedy.", ""]
    texts["index.md"] = "\n".join(index)
    folders = {"reference": texts, "errors": error_pages.pages(modules)}
    return {f"{folder}/{name}": text for folder, files in folders.items() for name, text in files.items()}


def main(arguments: list[str]) -> int:
    texts = pages()
    files = [path for folder in ("reference", "errors") for path in (DOCS / folder).glob("*.md")]
    there = {f"{path.parent.name}/{path.name}": path.read_text() for path in files if path.name != _LAYOUT}
    changed = sorted(name for name in texts.keys() | there.keys() if texts.get(name) != there.get(name))
    if "--check" in arguments:
        stale = f"out of date: {', '.join(changed)}; run python tools/reference.py"
        print(f"docs/reference, docs/errors: {stale if changed else 'as the code says'}")
        return 1 if changed else 0
    for name in changed:
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        if name in texts:
            (DOCS / name).write_text(texts[name])
        else:
            (DOCS / name).unlink()
    print(f"docs/reference, docs/errors: {len(changed)} pages written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
