"""The folders of the package: few files each, a docstring each, and a line in which each imports those before it."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest
from helpers.package_source import LAYERS, PACKAGE, ROOT, folder, imports, modules, name, package_of, tree

MAX_FILES = 16          # __init__.py included, short modules that only re-export not
# Each folder may import those before it in its layer, and the layers before its own. A folder stands after those
# inside it. docs/explanation/architecture.md has the picture.
LINE = (
    "effects/errors",
    "effects/base",
    "effects/trees",
    "effects/types",
    "effects/sharding",
    "effects/core",
    "effects/functions",
    "effects/programs",
    "effects/operations/foundations",
    "effects/operations/elementwise",
    "effects/operations/manipulation",
    "effects/operations/indexing",
    "effects/operations/reductions",
    "effects/operations/special",
    "effects/operations",
    "effects/operations/windows",
    "effects/operations/linalg",
    "effects/operations/collectives",
    "effects/control",
    "effects/operators",
    "effects",

    "interpreters/analysis",
    "interpreters/core",
    "interpreters/differentiation",
    "interpreters/references",
    "interpreters/batching",
    "interpreters/ragged",
    "interpreters/transformations",
    "interpreters/custom",
    "interpreters/handlers",
    "interpreters/direct",
    "interpreters/inspection",
    "interpreters/library/effectful",
    "interpreters/library/pure",
    "interpreters/library",
    "interpreters",

    "lowering/clients",
    "lowering/xla",
    "lowering/compile",
    "lowering/arrays",
    "lowering/jit",
    "lowering/inspection",
    "lowering/notebook",
    "lowering/maps",
    "lowering/export",
    "lowering",

    "handlax/numpy/arrays",
    "handlax/numpy/mathematics",
    "handlax/numpy/statistics",
    "handlax/numpy/linalg",
    "handlax/numpy",
    "handlax/random",
    "handlax/lax",
    "handlax/nn",
    "handlax/scipy/linalg",
    "handlax/scipy/special",
    "handlax/scipy/stats",
    "handlax/scipy/sparse",
    "handlax/scipy/cluster",
    "handlax/scipy/spatial",
    "handlax/scipy",
    "handlax/probability",
    "handlax/sharding",
    "handlax/checkpoints",
    "handlax/experimental/array_serialization",
    "handlax/experimental/compilation_cache",
    "handlax/experimental/sparse",
    "handlax/experimental",
    "handlax/launch",
    "handlax/as_jax",
    "handlax/interop",
    "handlax/example_libraries",
    "handlax/extend/core",
    "handlax/extend",
    "handlax/testing/generator",
    "handlax/testing/effect_programs",
    "handlax/testing/strategies",
    "handlax/testing/pytest_plugin",
    "handlax/testing/faults",
    "handlax/testing/fuzzing",
    "handlax/testing/mutants",
    "handlax/testing",
    "handlax",
)


# How a docstring ends: what may be imported, beside the folder itself and those in it.
IMPORTS = re.compile(
    r"; (?:imports nothing of the (?:package|other layers)"
    r"|may import (?P<folders>\w+(?:, \w+)*(?: and (?!what )\w+)?)(?P<before> and what comes before it)?)\.$")


def only_exports(text: str) -> bool:
    """Say whether a module has fewer than 60 lines, all of which hand on names that other modules define."""
    body = ast.parse(text).body
    return len(text.splitlines()) < 60 and not any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in body)


def too_full(folders: list[str]) -> list[str]:
    """Give the folders that occur more often than a folder may hold files."""
    return [f"{place}: {count} files" for place, count in Counter(folders).items() if count > MAX_FILES]


def sentence(module: ast.Module) -> str:
    """Give the first paragraph of the docstring of a folder on one line, without backquotes."""
    return " ".join((ast.get_docstring(module) or "").partition("\n\n")[0].replace("`", "").split())


def bad_docstring(place: str, module: ast.Module) -> str | None:
    """Say what the docstring of a folder lacks: one sentence, which in the inner layers says what may be imported.

    Docstrings of the outermost layer are read by users; of theirs the first paragraph counts.
    """
    text = sentence(module)
    inner = place.split("/")[0] != "handlax"
    if not text:
        return f"{place}: no docstring"
    if inner and (not text.endswith(".") or re.search(r"[.?!] [A-Z]", text)):
        return f"{place}: not one sentence"
    if inner and not IMPORTS.search(text):
        return f"{place}: does not say what it may import"
    return None


def called(word: str, place: str) -> str:
    """Give the folder that the docstring of ``place`` means by its last name: the nearest one, from there outwards."""
    near = [str(outer / word) for outer in PurePosixPath(place).parents if str(outer / word) in LINE]
    return near[0] if near else word


def named_in(place: str, module: ast.Module) -> list[str]:
    """Give the folders that the docstring of the folder ``place`` names as those that it may import."""
    said = IMPORTS.search(sentence(module))
    words = re.split(", | and ", said["folders"]) if said and said["folders"] else []
    return [called(word, place) for word in words]


def against_its_docstring(place: str, module: ast.Module, imported: Iterable[str]) -> list[str]:
    """Give what the docstring of the folder ``place`` says wrongly, where its files import from these folders."""
    said = IMPORTS.search(sentence(module))
    if said is None:
        return []
    named = named_in(place, module)
    mistakes = [f"{place}: names {other}, which does not come before it" for other in named
                if other not in LINE[:LINE.index(place)] or within(other, place)]
    allowed = {other for other in LINE if any(within(other, outer) for outer in [place, *named])}
    if said["before"] and not mistakes:
        allowed |= {*LINE[:LINE.index(named[-1])]}
    return mistakes + [f"{place}: imports {other}, which is not said" for other in sorted({*imported} - allowed)]


def within(place: str, outer: str) -> bool:
    """Say whether a folder is another or lies in it."""
    return f"{place}/".startswith(f"{outer}/")


def against_the_line(place: str, module: ast.Module, package: list[str], known: dict[str, str]) -> list[str]:
    """Give the imports of a file in the folder ``place`` that lead to a later folder; ``known`` as of ``modules``."""
    mistakes = []
    for line, imported in imports(module, package):
        target = known.get(imported) or known.get(imported.rpartition(".")[0])
        if target is not None and LINE.index(target) > LINE.index(place):
            mistakes.append(f"{place}: line {line} imports {imported} of {target}")
    return mistakes


def test_the_line_has_every_folder_once():
    assert sorted(LINE) == sorted({folder(file) for file in PACKAGE})


def test_the_line_goes_from_layer_to_layer():
    assert [*dict.fromkeys(place.split("/")[0] for place in LINE)] == list(LAYERS)


def test_a_folder_holds_few_files():
    assert not too_full([folder(file) for file in PACKAGE if not only_exports(file.read_text())])


@pytest.mark.parametrize("place", LINE)
def test_a_folder_says_what_lives_there(place):
    assert bad_docstring(place, tree(ROOT / place / "__init__.py")) is None


def test_a_folder_imports_what_its_docstring_says():
    known, imported = modules(PACKAGE), defaultdict(set)
    for file in PACKAGE:
        words = {word for _, word in imports(tree(file), package_of(file))}
        targets = {known.get(word) or known.get(word.rpartition(".")[0]) for word in words} - {None}
        for place in LINE:
            if within(folder(file), place):
                imported[place] |= targets
    assert not [mistake for place in LINE
                for mistake in against_its_docstring(place, tree(ROOT / place / "__init__.py"), imported[place])]


def test_on_the_page_of_the_layout_a_folder_stands_below_those_that_its_sentence_names():
    page = (ROOT / "docs" / "reference" / "layout.md").read_text()
    order = re.findall(r"^\| \[`[\w/]+`\]\(../../([\w/]+)\)", page, re.MULTILINE)
    assert {*order} == {*LINE} - {*LAYERS}
    assert not [f"{place} stands above {other}" for i, place in enumerate(order)
                for other in named_in(place, tree(ROOT / place / "__init__.py")) if other in order[i:]]


def test_a_folder_imports_those_before_it_alone():
    known = modules(PACKAGE)
    assert not [f"{name(file)}: {mistake}" for file in PACKAGE
                for mistake in against_the_line(folder(file), tree(file), package_of(file), known)]


# The checks above hold of an empty tree too, so each is shown a mistake that it must find.

def test_a_folder_that_is_too_full_is_found():
    assert too_full(["effects/a"] * 17 + ["effects/b"] * 16) == ["effects/a: 17 files"]


@pytest.mark.parametrize(("text", "found"), [
    ("from .a import b as b\nc = b", True),
    ("from .a import b as b\ndef f(): ...", False),
    ("from .a import b as b\nclass C: ...", False),
    ("from .a import b as b\n" + "\n" * 60, False),
])
def test_a_module_that_only_exports_is_found(text, found):
    assert only_exports(text) == found


@pytest.mark.parametrize(("place", "source", "found"), [
    ("effects/base", "x = 1", True),
    ("effects/base", '"""Errors; imports nothing of the package."""', False),
    ("effects/base", '"""Errors; imports little."""', True),
    ("effects/base", '"""Errors; may import all the others."""', True),
    ("effects/base", '"""Errors and\nsettings; may import trees."""', False),
    ("effects/base", '"""Errors. Settings; may import trees."""', True),
    ("effects/base", '"""Errors and settings."""', True),
    ("handlax/numpy", '"""NumPy\'s functions.\n\nAs JAX has them."""', False),
    ("handlax/numpy", "", True),
])
def test_a_folder_without_its_sentence_is_found(place, source, found):
    assert bool(bad_docstring(place, ast.parse(source))) == found


@pytest.mark.parametrize(("place", "clause", "imported", "found"), [
    ("effects/base", "imports nothing of the package", [], False),
    ("effects/base", "imports nothing of the package", ["effects/trees"], True),
    ("effects/trees", "may import types", [], True),
    ("effects/trees", "may import trees", [], True),
    ("effects/trees", "may import tree", [], True),
    ("effects/core", "may import base and trees", ["effects/types"], True),
    ("effects/core", "may import base, trees and types", ["effects/types", "effects/core"], False),
    ("effects/core", "may import types and what comes before it", ["effects/base", "effects/types"], False),
    ("effects/core", "may import trees and what comes before it", ["effects/base", "effects/types"], True),
    ("effects/operations", "may import core", ["effects/operations/special", "effects/core"], False),
    ("effects/operations/special", "may import reductions", ["effects/operations/indexing"], True),
    ("interpreters/analysis", "may import core", ["effects/core"], True),
    ("interpreters/core", "may import effects", ["effects/core"], False),
    ("handlax/numpy/statistics", "may import ``arrays``", ["handlax/numpy/mathematics"], True),
])
def test_a_docstring_against_the_imports_is_found(place, clause, imported, found):
    assert bool(against_its_docstring(place, ast.parse(f'"""What is there; {clause}."""'), imported)) == found


@pytest.mark.parametrize(("place", "source", "found"), [
    ("effects/base", "from ..trees import paths", True),
    ("effects/base", "from ..trees.paths import keystr", True),
    ("effects/base", "if TYPE_CHECKING:\n    from ..trees.paths import keystr", True),
    ("effects/base", "from .stack import Run", False),
    ("effects/types", "from ..trees.paths import keystr", False),
    ("lowering/xla", "def f():\n    from ...handlax.lowering.jit import jit", False),
    ("lowering/xla", "from ..jit.jit import jit", True),
    ("lowering/xla", "import numpy.linalg", False),
    ("effects/operations/elementwise", "from ..linalg import Cholesky", True),
    ("effects/operations/elementwise", "from ..foundations.shapes import Reshape", False),
    ("effects/operations/elementwise", "from .. import special", True),
    ("effects/operations", "from .special.special_functions import Lgamma", False),
])
def test_an_import_against_the_line_is_found(place, source, found):
    known = modules(PACKAGE)
    assert bool(against_the_line(place, ast.parse(source), ["handlax", *place.split("/")], known)) == found
