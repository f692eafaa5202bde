"""docs/explanation/architecture.md says what the code says: names, paths of calls, caches."""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.package_source import PACKAGE, ROOT, module_name

import handlax as hx

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PAGES = (PAGE, ROOT / "CONTRIBUTING.md")
PLACE = r"`([\w./]+\.py): ([\w.]+)`"
LINK = re.compile(rf"\[{PLACE}\]\(([^)]+)\)")
BLOCK = re.compile(r"^```python\n((?:(?!```).*\n)*)```\n(?:\n((?:\d+\. .*\n)+))?", re.MULTILINE)      # and its steps
# Runs the blocks of a page; prints, for each that a list of steps follows, the functions that were called in it, by the
# definition in which their code stands: functions that others make may be renamed.
FOLLOWER = """
import ast, functools, json, os, sys
blocks, called = json.loads(sys.stdin.read()), []
@functools.cache
def definitions(file):
    found = []
    def add(body, prefix):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first = min([node.lineno, *[each.lineno for each in node.decorator_list]])
                found.append((first, node.end_lineno, prefix + node.name))
                add(node.body, prefix + node.name + ".")
    add(ast.parse(open(file).read()).body if os.path.isfile(file) else [], "")
    return found
def written(code):
    around = [name for first, last, name in definitions(code.co_filename) if first <= code.co_firstlineno <= last]
    return around[-1] if around else code.co_qualname
def follow(frame, event, argument):
    code = frame.f_code
    if event == "call":
        called.append(code)
space, found = {}, []
for program, listed in blocks:
    code = compile(program, "page", "exec")
    del called[:]
    if listed:
        sys.setprofile(follow)
    exec(code, space)
    sys.setprofile(None)
    if listed:
        found.append([(code.co_filename, written(code)) for code in called])
print(json.dumps(found))
"""


def defined(source: str) -> set[str]:
    """The names of functions, classes and values in a file, those in classes with the name of the class."""
    found: set[str] = set()

    def add(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + node.name)
                add(node.body, f"{prefix}{node.name}.")
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.add(prefix + target.id)
                elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                    found.add(f"{prefix.removesuffix('__init__.')}{target.attr}")

    add(ast.parse(source).body, "")
    return found


def wrong_places(text: str, page: Path) -> list[str]:
    """The places named in a page, as ``file.py: name``, that do not exist or are no links."""
    wrong = [f"{file}: {name} is no link" for file, name in re.findall(PLACE, LINK.sub("", text))]
    for file, name, target in LINK.findall(text):
        path = (page.parent / target).resolve()
        if not path.is_file() or not path.as_posix().endswith(f"/{file}"):
            wrong.append(f"{file}: the link leads to {target}")
        elif name not in defined(path.read_text()):
            wrong.append(f"{file}: there is no {name}")
    return wrong


def first_missing(steps: list[tuple[str, str]], called: list[tuple[str, str]]) -> str | None:
    """The first step that does not come after the one before it among the calls."""
    at = 0
    for file, name in steps:
        while at < len(called) and not (called[at][0] == file and f"{called[at][1]}.".startswith(f"{name}.")):
            at += 1
        if at == len(called):
            return f"{file}: {name}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_function_that_a_page_names_exists(page):
    assert not wrong_places(page.read_text(), page)


def test_functions_are_called_in_the_order_in_which_the_page_names_them():
    blocks = [found.groups() for found in BLOCK.finditer(PAGE.read_text())]
    lists = [[((PAGE.parent / target).resolve().as_posix(), name) for _, name, target in LINK.findall(steps)]
             for _, steps in blocks if steps]
    assert len(lists) > 5
    given = json.dumps([(program, bool(steps)) for program, steps in blocks])
    command = [sys.executable, "-P", "-c", FOLLOWER]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=300)
    followed = [[(os.path.realpath(file), name) for file, name in calls] for calls in json.loads(done.stdout)]
    assert [first_missing(steps, calls) for steps, calls in zip(lists, followed)] == [None] * len(lists)


def test_every_cache_is_listed_with_its_bound():
    for file in PACKAGE:
        importlib.import_module(module_name(file))
    table = (ROOT / "docs" / "reference" / "caches.md").read_text()
    listed = {name: int(bound) for name, bound in re.findall(r"^\| `([^`]+)` \| (\d+) \|", table, re.MULTILINE)}
    assert listed == {name: info.capacity for name, info in hx.cache_info().items()}


# Each check is shown a mistake that it must find.

@pytest.mark.parametrize(("text", "found"), [
    ("[`caches.py: Cache.get`](../../effects/base/caches.py)", False),
    ("[`caches.py: CACHES`](../../effects/base/caches.py)", False),
    ("[`caches.py: AnyCache.capacity`](../../effects/base/caches.py)", False),
    ("[`caches.py: Cache.ask`](../../effects/base/caches.py)", True),
    ("[`caches.py: Cache`](../../effects/base/stack.py)", True),
    ("[`caches.py: Cache`](../../effects/caches.py)", True),
    ("`caches.py: Cache`", True),
])
def test_a_name_that_does_not_exist_is_found(text, found):
    assert bool(wrong_places(text, PAGE)) == found


def test_a_step_out_of_order_is_found():
    called = [("a.py", "f"), ("b.py", "C.g"), ("a.py", "h.inner")]
    assert first_missing([("a.py", "f"), ("a.py", "h")], called) is None
    assert first_missing([("a.py", "h"), ("a.py", "f")], called) == "a.py: f"
    assert first_missing([("b.py", "g")], called) == "b.py: g"
