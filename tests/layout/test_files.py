"""What every file of the repository keeps to: its length, that of its functions, and nothing left for later."""

import ast
import re
import sys
from importlib.metadata import packages_distributions

import pytest
from helpers.package_source import FILES, PACKAGE, ROOT, name, nodes, tree

MAX_LINES = 600
MAX_FUNCTION = 50        # its decorators and docstring not counted
LATER = re.compile(r"\b(TO(?:DO)|FIX(?:ME)|XX(?:X))\b|raise NotImplementedErro(?:r)")


def too_long(lengths: dict[str, int]) -> list[str]:
    return [f"{file}: {length} lines" for file, length in lengths.items() if length > MAX_LINES]


def long_functions(file: str, module: ast.Module) -> list[str]:
    """Give the functions that are too long, methods and functions within functions included."""
    found = []
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                length -= node.body[0].end_lineno - node.body[0].lineno + 1
            if length > MAX_FUNCTION:
                found.append(f"{file}:{node.lineno} {node.name}: {length} lines")
    return found


def left_for_later(file: str, text: str) -> list[str]:
    return [f"{file}:{number} {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if LATER.search(line)]


def own_warnings(file: str, module: ast.Module) -> list[str]:
    """Give the calls that warn with a ``stacklevel`` counted by hand, where ``warn_user`` finds the user's line."""
    if file == "effects/base/source_locations.py":
        return []
    return [f"{file}:{node.lineno}" for node in nodes(module)
            if (isinstance(node, ast.Attribute) and ast.unparse(node) == "warnings.warn")
            or (isinstance(node, ast.ImportFrom) and node.module == "warnings"
                and "warn" in {alias.name for alias in node.names})]


def locks_that_deadlock(file: str, module: ast.Module) -> list[str]:
    """Give the locks that a thread cannot take twice: what runs under one may run any finalizer or signal handler.

    One that is never waited for, ``acquire(blocking=False)``, does no harm.
    """
    polite = {ast.unparse(node.func.value) for node in nodes(module)
              if isinstance(node, ast.Call) and ast.unparse(node).endswith(".acquire(blocking=False)")}
    return [f"{file}:{node.lineno}" for node in nodes(module)
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func) in ("threading.Lock", "Lock")
            and ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target) not in polite]


def interrupted_blocks(file: str, module: ast.Module) -> list[str]:
    """Give the blocks of ``np.errstate``, whose end in Python an interrupt may prevent: ``errors_ignored`` is safe."""
    return [f"{file}:{node.lineno}" for node in nodes(module)
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "np.errstate"]


def test_files_are_short():
    assert not too_long({name(file): len(file.read_text().splitlines()) for file in FILES})


def test_functions_are_short():
    assert not [mistake for file in FILES for mistake in long_functions(name(file), tree(file))]


def test_contributors_are_told_the_limits():
    said = f"{MAX_LINES} at most; a function about 40, {MAX_FUNCTION} at most"
    assert said in (ROOT / "CONTRIBUTING.md").read_text()


def test_nothing_is_left_for_later():
    assert not [mistake for file in FILES for mistake in left_for_later(name(file), file.read_text())]


def test_warnings_name_the_line_of_the_user():
    assert not [found for file in PACKAGE for found in own_warnings(name(file), tree(file))]


def test_a_finalizer_never_waits_for_its_own_thread():
    assert not [found for file in PACKAGE for found in locks_that_deadlock(name(file), tree(file))]


def test_no_package_of_tests_hides_an_installed_one():
    """tests/ is on the path, so a package ``tests/numpy`` would be found before NumPy."""
    packages = {file.parent.name for file in (ROOT / "tests").glob("*/__init__.py")}
    assert not packages & (set(packages_distributions()) | sys.stdlib_module_names)


def test_no_block_of_numpys_errors_can_be_left_by_an_interrupt():
    assert not [place for file in PACKAGE for place in interrupted_blocks(name(file), tree(file))]
    assert interrupted_blocks("a", ast.parse("with np.errstate(all='ignore'): pass"))


# The checks above hold of an empty tree too, so each is shown a mistake that it must find.

def test_a_file_that_is_too_long_is_found():
    assert too_long({"a.py": MAX_LINES, "b.py": MAX_LINES + 1}) == [f"b.py: {MAX_LINES + 1} lines"]


@pytest.mark.parametrize(("before", "lines", "inside", "found"), [
    ("def f():", MAX_FUNCTION - 1, "    ", False),
    ("def f():", MAX_FUNCTION, "    ", True),
    ("async def f():", MAX_FUNCTION, "    ", True),
    ('def f():\n    """Says\n    what."""', MAX_FUNCTION - 1, "    ", False),
    ('def f():\n    """Says\n    what."""', MAX_FUNCTION, "    ", True),
    ("class A:\n    def f(self):", MAX_FUNCTION, "        ", True),
    ("if x:\n    def f():", MAX_FUNCTION, "        ", True),
])
def test_a_function_that_is_too_long_is_found(before, lines, inside, found):
    module = ast.parse("\n".join([before, *[f"{inside}x = {i}" for i in range(lines)]]))
    assert bool(long_functions("a.py", module)) == found


@pytest.mark.parametrize(("text", "found"), [
    ("x = 1  # TO" + "DO: two", True),
    ("def f():\n    raise NotImplementedErro" + "r", True),
    ("x = 1", False),
])
def test_what_is_left_for_later_is_found(text, found):
    assert bool(left_for_later("a.py", text)) == found


@pytest.mark.parametrize(("file", "source", "found"), [
    ("handlax/nn.py", "import warnings\nwarnings.warn('x', stacklevel=2)", ["handlax/nn.py:2"]),
    ("handlax/nn.py", "from warnings import catch_warnings, warn", ["handlax/nn.py:1"]),
    ("handlax/nn.py", "import warnings\nwarnings.catch_warnings()\nwarn_user('x')", []),
    ("lowering/cache.py", "import warnings\nwarnings.warn('x')", ["lowering/cache.py:2"]),
])
def test_a_warning_with_its_own_level_is_found(file, source, found):
    assert own_warnings(file, ast.parse(source)) == found


@pytest.mark.parametrize(("source", "found"), [
    ("import threading\n_LOCK = threading.Lock()", ["a.py:2"]),
    ("from threading import Lock\nclass A:\n    def __init__(self):\n        self.lock: Lock = Lock()", ["a.py:4"]),
    ("import threading\n_LOCK = threading.RLock()", []),
    ("import threading\nlock = threading.Lock()\nif lock.acquire(blocking=False):\n    lock.release()", []),
])
def test_a_lock_that_a_thread_cannot_take_twice_is_found(source, found):
    assert locks_that_deadlock("a.py", ast.parse(source)) == found
