"""No file of the package imports itself by way of others, imports under ``if TYPE_CHECKING`` included."""

from pathlib import Path

import pytest
from helpers.package_source import LAYERS, ROOT, imports, module_name, package_of, tree

Graph = dict[str, set[str]]


def import_graph(root: Path) -> Graph:
    """Each module of the layers under ``root`` -> those that it imports. Of ``a.b.name`` the module is ``a.b``."""
    files = {module_name(file, root): file for layer in LAYERS for file in (root / layer).rglob("*.py")}
    graph: Graph = {}
    for module, file in files.items():
        names = {imported for _, imported in imports(tree(file), package_of(file, root))}
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
    ({"api/__init__.py": "from .lowering.a import A", "lowering/a.py": "from ..interpreters.b import B",
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
