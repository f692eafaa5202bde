"""No file of the package imports itself by way of others, imports under ``if TYPE_CHECKING`` included.

Nor do two threads, each at a first use of the package, wait for each other: a package that imports its own modules is
locked before they are.
"""

import ast
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from helpers.package_source import LAYERS, ROOT, imported_by, module_name, nodes, package_of, tree

Graph = dict[str, set[str]]


def at_run_time(module: ast.Module) -> list[ast.stmt]:
    """Give the statements at the top of a file, without those of ``if TYPE_CHECKING``."""
    return [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]


def import_graph(root: Path, statements: Callable[[ast.Module], Iterable[ast.AST]] = nodes) -> Graph:
    """Each module of the layers under ``root`` -> those that it imports. Of ``a.b.name`` the module is ``a.b``."""
    files = {module_name(file, root): file for layer in LAYERS for file in (root / layer).rglob("*.py")}
    graph: Graph = {}
    for module, file in files.items():
        package = package_of(file, root)
        names = {imported for node in statements(tree(file)) for imported in imported_by(node, package)}
        graph[module] = {name if name in files else name.rpartition(".")[0] for name in names} & set(files) - {module}
    return graph


def cycle_in(graph: Graph) -> list[str] | None:
    """A path of imports that ends where it began, or None. Depth first; ``open`` is the path being walked."""
    closed: set[str] = set()
    for start in graph:
        open, waiting = [start], [iter(sorted(graph[start]))]
        while open:
            module = next(waiting[-1], None)
            if module is None:
                closed.add(open.pop())
                waiting.pop()
            elif module in open:
                return [*open[open.index(module):], module]
            elif module not in closed:
                open.append(module)
                waiting.append(iter(sorted(graph[module])))
    return None


def inside(module: str, package: str) -> bool:
    """Say whether a module is a package or lies in it."""
    return f"{module}.".startswith(f"{package}.")


def loaded_by(module: str, graph: Graph) -> set[str]:
    """Give the modules that an import of ``module`` loads; the packages of each are among them."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name and name not in found:
            found.add(name)
            waiting += [*graph.get(name, ()), name.rpartition(".")[0]]
    return found


def around_their_packages(root: Path) -> Iterable[str]:
    """Give the imports of a module that lock it before its package, which imports it too.

    What ``import handlax`` loads is locked after ``handlax`` itself, so there the order does not matter.
    """
    graph = import_graph(root, at_run_time)
    early = loaded_by("handlax", graph)
    importing = {name for name in graph if any(inside(used, name) for used in graph[name])} - early
    for file in (file for layer in LAYERS for file in (root / layer).rglob("*.py")):
        for node in at_run_time(tree(file)):
            if isinstance(node, ast.ImportFrom):
                module = next(imported_by(node, package_of(file, root))).rpartition(".")[0]
                package = module.rpartition(".")[0]
                if module in graph and package in importing and not inside(module_name(file, root), package):
                    yield f"{module_name(file, root)} imports {module}, not {package}"


def test_modules_of_a_package_that_imports_them_are_imported_by_way_of_it():
    early = loaded_by("handlax", import_graph(ROOT, at_run_time))
    assert "handlax.numpy.arrays.creation" in early and not early & {"handlax.nn", "handlax.scipy.special"}
    assert not [*around_their_packages(ROOT)]


def test_no_file_imports_itself_by_way_of_others():
    graph = import_graph(ROOT)
    assert len(graph) > 150 and graph["handlax.effects.programs.program"] >= {"handlax.effects.programs.printer"}
    cycle = cycle_in(graph)
    assert cycle is None, " -> ".join(cycle)


@pytest.mark.parametrize(("files", "cycle"), [
    ({"effects/a.py": "from . import b", "effects/b.py": "from .a import A"}, 2),
    ({"effects/a.py": "if TYPE_CHECKING:\n    from .b import B", "effects/b.py": "from .a import A"}, 2),
    ({"effects/a.py": "def f():\n    import handlax.effects.b", "effects/b.py": "from .a import A"}, 2),
    ({"effects/__init__.py": "from .a import A", "effects/a.py": "from ..effects import A"}, 2),
    ({"handlax/__init__.py": "from .lowering.a import A", "lowering/a.py": "from ..interpreters.b import B",
      "interpreters/b.py": "from .. import A"}, 3),
    ({"effects/a.py": "from .b import B\nfrom .c import C", "effects/b.py": "from .c import C", "effects/c.py": ""}, 0),
    ({"effects/a.py": "from .a import A\nimport numpy", "interpreters/a.py": "from ..effects.a import A"}, 0),
])
def test_a_cycle_is_found(tmp_path, files, cycle):
    for name, source in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    found = cycle_in(import_graph(tmp_path))
    assert (len(set(found)) if found else 0) == cycle


@pytest.mark.parametrize(("files", "found"), [
    ({"handlax/__init__.py": "", "handlax/scipy.py": "from .nn.layers import f"}, True),
    ({"handlax/__init__.py": "", "handlax/scipy.py": "from .nn import layers, f"}, False),
    ({"handlax/__init__.py": "from .nn import f", "handlax/scipy.py": "from .nn.layers import f"}, False),
    ({"handlax/__init__.py": "if TYPE_CHECKING:\n    from .nn import f",
      "handlax/scipy.py": "from .nn.layers import f"}, True),
    ({"handlax/__init__.py": "", "handlax/nn/other.py": "from .layers import f"}, False),
    ({"handlax/__init__.py": "", "handlax/nn/__init__.py": "", "handlax/scipy.py": "from .nn.layers import f"}, False),
])
def test_an_import_around_the_package_is_found(tmp_path, files, found):
    nn = {"handlax/nn/__init__.py": "from .layers import f", "handlax/nn/layers.py": ""}
    for name, source in (nn | files).items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(source)
    assert bool([*around_their_packages(tmp_path)]) == found
