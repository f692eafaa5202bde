"""The names of the package: which there are, and which are loaded when first asked for."""

import ast
import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import handlax
from handlax import make_program

UNLOADED = (
    "handlax.ad_checkpoint", "handlax.lax", "handlax.library", "handlax.nn", "handlax.probability", "handlax.random",
    "handlax.effects.programs.parse_result", "handlax.interpreters.inspection.draw",
    "handlax.interpreters.inspection.stepper", "handlax.interpreters.library",
    "handlax.interpreters.analysis.typecheck", "hashlib", "jaxlib", "logging", "returns", "typing_extensions",
)


def new_process(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_name_leads_to_something():
    for name in {*dir(handlax), *handlax.__all__}:
        assert getattr(handlax, name) is getattr(handlax, name)


def said(body: list[ast.stmt]) -> list[str]:
    """The public names that statements import or assign, those under ``if`` included."""
    names = [alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    names += [target.id for node in body if isinstance(node, ast.Assign) for part in node.targets
              for target in (part.elts if isinstance(part, ast.Tuple) else [part]) if isinstance(target, ast.Name)]
    names += [name for node in body if isinstance(node, ast.If) for name in said(node.body)]
    return [name for name in names if name[0] not in "_*"]


@pytest.mark.parametrize("name", ["handlax", "handlax.experimental", "handlax.lax", "handlax.library", "handlax.scipy"])
def test_a_public_name_is_said_in_one_place_which_type_checkers_see(name):
    package = importlib.import_module(name)
    names = said(ast.parse(Path(package.__file__).read_text()).body)
    assert len(names) == len(set(names))
    assert set(names) == {*getattr(package, "__all__", names)}


@pytest.mark.parametrize("name", ["numpy", "random", "nn"])
def test_each_public_name_is_exported_by_one_file(name):
    package = importlib.import_module(f"handlax.{name}")
    tree = ast.parse(Path(package.__file__).read_text())
    stars = {f"handlax.{name}.{node.module}" for node in tree.body
             if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"}
    exported = [public for star in sorted(stars) for public in importlib.import_module(star).__all__]
    assert len(exported) == len(set(exported))
    own = [public for public in package.__all__ if public not in exported]
    assert all(isinstance(getattr(package, public), ModuleType) for public in own)
    assert sorted(package.__all__) == sorted([*exported, *own])
    # no file is forgotten: every one that says what it exports is exported, or is a public module itself
    files = {module for module in sys.modules
             if module.startswith(f"handlax.{name}.") and hasattr(sys.modules[module], "__all__")}
    modules = tuple([f"handlax.{name}.{public}." for public in own])
    assert all(f"{file}.".startswith(modules) for file in files - stars)


def test_a_name_that_there_is_not_is_an_error_that_names_the_nearest():
    with pytest.raises(AttributeError, match="module 'handlax' has no attribute 'probabilty'") as caught:
        handlax.probabilty
    assert caught.value.name == "probabilty" and caught.value.obj is handlax
    with pytest.raises(ImportError):
        exec("from handlax import probabilty")


def test_importing_the_package_loads_none_of_what_is_asked_for_later():
    program = f"""
import sys, numpy, ml_dtypes, pyrsistent
before = set(sys.modules)
import handlax
print([name for name in {UNLOADED} if name in sys.modules and name not in before])
"""
    assert new_process(program) == "[]"
    assert all(importlib.util.find_spec(name) for name in UNLOADED)


@pytest.mark.parametrize("program", [
    "from handlax import probability; assert probability.Normal",
    "import handlax.probability; assert handlax.probability.Normal",
    "import handlax; assert handlax.library.state and handlax.get is handlax.library.get",
    "from handlax import random; assert random.normal",
    "from handlax import nn; assert nn.initializers",
    "from handlax import *; assert sow and lax.psum and numpy.sum and not callable(globals().get('effects'))",
    "import handlax, pickle; assert pickle.loads(pickle.dumps(handlax.sow)) is handlax.sow",
    "import handlax as hx; assert '<div' in hx.make_program(lambda x: x)(1.0)._repr_html_()",
])
def test_a_new_process_finds_by_every_way_what_it_asks_for(program):
    new_process(program)


def test_an_operation_of_a_module_that_is_not_loaded_is_unpickled():
    p = make_program(lambda x: handlax.put("n", x))(1.0)
    assert new_process(f"import pickle; print(pickle.loads({pickle.dumps(p)!r}))") == str(p).strip()


def test_threads_that_ask_at_once_get_the_same():
    program = """
import handlax, threading, sys
sys.setswitchinterval(1e-6)
names = ["random", "nn", "probability", "library", "ask", "lax", "draw", "ad_checkpoint"]
barrier, found = threading.Barrier(16, timeout=60), []
def ask(i):
    barrier.wait()
    found.append({name: id(getattr(handlax, name)) for name in names[i % 8:] + names[:i % 8]})
threads = [threading.Thread(target=ask, args=(i,), daemon=True) for i in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join(60)
print(len(found), all(each == found[0] for each in found))
"""
    assert new_process(program) == "16 True"


def test_numpy_s_ways_of_printing_are_those_in_force_where_they_are_set_before_debug_is_loaded():
    program = """
import numpy, handlax
numpy.set_printoptions(precision=2)
print(handlax.make_program(lambda x: handlax.debug.print("{}", x))(1.0))
"""
    assert "options=(('precision', 2),)" in new_process(program)


def test_loading_while_a_program_is_recorded_adds_nothing_to_it():
    program = """
import handlax
p = handlax.make_program(lambda x: [getattr(handlax, name) for name in handlax.__all__] and x)(1.0)
print(p.ops, p.constants)
"""
    assert new_process(program) == "() ()"


# Texts of programs


def test_the_declared_operations_are_those_of_modules_loaded_later():
    program = """
import handlax
from handlax.effects.core.operation import LATE_OPERATIONS, OPERATIONS
names = lambda: {(kind.name, kind.__module__) for kind in OPERATIONS.values()}
early = names()
for name in handlax.__all__: getattr(handlax, name)
for name in handlax.experimental.__all__: getattr(handlax.experimental, name)
handlax.numpy.linalg, handlax.numpy.gcd(4, 6)
import handlax.interpreters.ragged.ragged_loop
print(sorted((names() - early) ^ {*LATE_OPERATIONS.items()}))
"""
    assert new_process(program) == "[]"


def test_the_package_is_loaded_again_and_its_operations_stay_what_they_are():
    program = """
import handlax as hx, importlib
p = hx.make_program(lambda x: hx.put("n", x))(1.0)
importlib.reload(hx)
print(hx.Program.parse(str(p)) == p, str(hx.make_program(lambda x: hx.put("n", x))(1.0)) == str(p))
"""
    assert new_process(program) == "True True"


def test_a_dry_run_skips_operations_with_bodies_that_are_loaded_in_its_course():
    program = """
import handlax as hx
run = hx.library.dry_run(lambda x: hx.lax.reduce(x, hx.numpy.float32(0.0), lambda a, b: a * b + a, (0,)))
print([step.op.name for step in run(hx.numpy.ones(3)).steps])
"""
    assert new_process(program) == "['reduce']"


def test_a_text_that_names_an_operation_loads_its_module():
    text = str(make_program(lambda x: (handlax.put("n", x), handlax.random.uniform(handlax.random.key(0)))[1])(1.0))
    assert "put" in text and "random_bits" in text
    read = f"import handlax; p = handlax.Program.parse({text!r}); print(p)"
    assert new_process(read) == text.strip()


def test_an_operation_of_a_user_leaves_the_name_to_the_one_that_is_loaded_later():
    program = """
import handlax as hx
@hx.effect
class Get:
    def result_type(op): return None
print(hx.make_program(lambda x: (hx.perform(Get()), x)[1])(1.0))
"""
    assert "__main__:Get" in new_process(program)
