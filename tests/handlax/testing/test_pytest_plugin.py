"""``pytest -p handlax_pytest``: markers, options and fixtures, as pytest runs them in a process of its own."""

import pytest

from handlax_pytest import seed_of

pytest_plugins = ["pytester"]

USED = """
import handlax as hx
import pytest
from handlax import numpy as hnp
"""


@pytest.fixture
def run(pytester):
    """The outcome of a file of tests, with options in an ini file and on the command line."""
    def execute(tests, *arguments, ini=(), **files):
        pytester.makeini("\n".join(["[pytest]", "filterwarnings = error", *ini]))
        pytester.makepyfile(test_it=tests, **files)
        return pytester.runpytest_subprocess(
            "-p", "handlax_pytest", "-p", "no:cacheprovider", "--strict-markers", *arguments)

    return execute


LEAKS = USED + """
import tempfile, threading, time

KEPT = []

@pytest.fixture
def strict():
    with hx.configure(numpy_dtype_promotion="strict"):
        yield

@pytest.fixture(scope="module", autouse=True)
def eager():
    with hx.configure(disable_jit=False, debug_infs=True):
        yield

@pytest.fixture
def restored():
    yield
    hx.config.update("debug_nans", False)

def test_put_back_by_a_fixture(restored):
    hx.config.update("debug_nans", True)

def test_nothing(strict):
    hx.jit(hnp.sin)(1.0)

def test_setting():
    hx.config.update("debug_nans", True)

def test_value():
    hx.jit(lambda x: KEPT.append(x) or x)(1.0)

@pytest.mark.handlax(leaks=False)
def test_unchecked():
    hx.jit(lambda x: KEPT.append(x) or x)(2.0)

def test_nothing_again():
    assert not hx.config.debug_nans

def test_that_fails_by_itself():
    hx.config.update("debug_nans", True)
    assert not KEPT

@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("handlax.testing.faults.left_behind.PATIENCE", 0.1)
    yield

@pytest.mark.handlax(threads=True)
def test_thread(impatient):
    threading.Thread(target=time.sleep, args=[60], name="sleeper", daemon=True).start()

@pytest.mark.handlax(files=True)
class TestFiles:
    def test_file(self):
        tempfile.mkstemp(prefix="logs")

    def test_of_pytest(self, tmp_path):
        (tmp_path / "x").write_text("x")
"""


def test_leaks_fail_the_test_that_leaks_and_no_other(run):
    result = run(LEAKS, ini=["handlax_leaks = true"])
    result.assert_outcomes(passed=9, failed=1, errors=4)
    result.stdout.fnmatch_lines([
        "*_ ERROR at teardown of test_setting _*",
        "the setting debug_nans must be left at False, got True, as by hx.config.update.",
        "*_ ERROR at teardown of test_value _*",
        "jit: no value of a trace may outlive it, got f32[[]]~, made at test_it.py:*, still referenced.",
        "*_ ERROR at teardown of test_thread _*",
        "the thread 'sleeper' must have ended.",
        "*_ ERROR at teardown of TestFiles.test_file _*",
        "a temporary file must be removed, got 'logs*'.",
        "*_ test_that_fails_by_itself _*",
        ">       assert not KEPT",
    ])


COUNTS = USED + """
def step(x):
    return x * 0.31701

@pytest.mark.handlax(max_traces=1, max_compiles=1)
class TestStep:
    def test_once(self):
        f = hx.jit(step)
        assert f(1.0) == f(1.0)

    def test_again(self):
        f = hx.jit(step)
        [f(hnp.ones(n)) for n in (1, 2)]

    @pytest.mark.handlax(max_traces=2, max_compiles=None)
    def test_twice(self):
        f = hx.jit(step)
        [f(hnp.ones(n)) for n in (3, 4)]

@pytest.mark.handlax(max_trace=1)
def test_misspelt():
    pass

@pytest.mark.handlax(True)
def test_without_a_keyword():
    pass

@pytest.mark.handlax(max_traces="one")
def test_with_no_number():
    pass
"""


def test_limits_on_traces_and_compilations(run):
    result = run(COUNTS)
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines([
        "at most 1 traces must be made, got 2; at most 1 compilations must be made, got 2.",
        "  traced: jit(step) 2 times",
        "  jit(step) at test_it.py:*, kind 2: x: f32[[]2] (x: shape from (1,) to (2,))",
        "pytest.mark.handlax takes leaks, *, got max_trace.",
        "pytest.mark.handlax takes leaks, *, got True.",
        "max_traces must be a number, got 'one'.",
    ])


RECORDED = USED + """
import os

@pytest.mark.parametrize("n", [1, 2])
def test_model(stablehlo_snapshot, program_snapshot, n):
    f = getattr(hnp, ["", "sin", os.environ["OTHER"]][n])
    stablehlo_snapshot(f)(hnp.ones(n))
    program_snapshot(f)(hnp.ones(n))

@pytest.mark.parametrize("n", [1, 2])
def test_draw(rng, key, n):
    assert False, [float(rng.random()), hx.random.key_data(key)]
"""


def drawn(result):
    return {line for line in result.outlines if line.startswith("E       AssertionError: [")}


def test_snapshots_are_written_on_demand_and_compared_and_seeds_are_told(run, pytester, monkeypatch):
    monkeypatch.setenv("OTHER", "cos")
    written = run(RECORDED, "--handlax-update")
    written.assert_outcomes(passed=2, failed=2)
    files = (pytester.path / "snapshots" / "test_it").iterdir()
    assert sorted(file.name for file in files) == [
        "test_model[1].mlir", "test_model[1].program", "test_model[2].mlir", "test_model[2].program"]
    monkeypatch.setenv("OTHER", "exp")
    compared = run(RECORDED, "--handlax-seed=7")
    compared.assert_outcomes(passed=1, failed=3)
    compared.stdout.fnmatch_lines(["*- %0 = stablehlo.cosine *", "*+ %0 = stablehlo.exponential *"])
    assert len(drawn(written) | drawn(compared)) == 4
    for result, number in ((written, 0), (compared, 7)):
        seed = seed_of(number, "test_it.py::test_draw[1]")
        result.stdout.fnmatch_lines([f"the seed of rng and key is {seed}, by --handlax-seed={number}."])


FORGOTTEN = """
from handlax import numpy as hnp

def test_forgotten(program_snapshot):
    program_snapshot(hnp.sin)
"""


def test_a_snapshot_that_is_never_compared_is_an_error(run):
    result = run(FORGOTTEN, "--handlax-update")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*test_forgotten: a snapshot must be compared, got a function without arguments.*"])


def test_the_seed_of_a_test_is_the_same_everywhere():
    assert [seed_of(0, "a"), seed_of(1, "a"), seed_of(0, "b")] == [3291919157, 3321157890, 1564467855]


DEVICES = """
import handlax as hx
COUNT = len(hx.devices())

def test_devices():
    assert COUNT == 3
"""


VARIABLE = """
import os

def test_devices():
    assert os.environ["HANDLAX_NUM_CPU_DEVICES"] == "3"
"""


def test_the_number_of_devices_is_set_before_any_file_can_use_them(run):
    run(DEVICES, ini=["handlax_devices = 3"], conftest=DEVICES).assert_outcomes(passed=1)
    run(VARIABLE, "--handlax-devices=3", ini=["handlax_devices = 2"]).assert_outcomes(passed=1)
    refused = run(VARIABLE, ini=["handlax_devices = three"])
    refused.stderr.fnmatch_lines(["*handlax_devices must be a number, got 'three'*"])


def test_asserts_of_the_installed_package_are_not_rewritten(run, pytester):
    facts = pytester.mkdir("installed-1.dist-info")
    (facts / "METADATA").write_text("Name: installed\nVersion: 1\n")
    (facts / "RECORD").write_text("handlax/__init__.py,,\nhandlax_pytest.py,,\n")
    (facts / "entry_points.txt").write_text("[pytest11]\nhandlax_pytest = handlax_pytest\n")
    run("""
import handlax

def test_loader(request):
    assert "handlax_pytest" in request.config.pluginmanager.rewrite_hook._must_rewrite
    assert type(handlax.__loader__).__name__ == "SourceFileLoader"
""").assert_outcomes(passed=1)


def test_a_run_that_asks_for_nothing_imports_nothing_of_the_package(run):
    run("""
import sys

def test_modules():
    assert "handlax_pytest" in sys.modules
    assert not {name for name in sys.modules if name.partition(".")[0] in ("handlax", "jaxlib", "numpy")}
""").assert_outcomes(passed=1)
