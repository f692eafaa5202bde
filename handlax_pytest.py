"""The pytest plug-in of handlax as pytest finds it: its options, its marker and its fixtures.

pytest imports the plug-ins of all installed packages whenever it starts, and this module imports nothing of handlax: it
stands beside the package, whose import loads jaxlib. What a test asks for is done by ``handlax.testing``, which is
imported by the first test that asks.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

if TYPE_CHECKING:
    import numpy as np

DEVICES = "HANDLAX_NUM_CPU_DEVICES"


class Checks(NamedTuple):
    """What is checked of a test; each field is a keyword of the marker ``handlax``, and an option ``handlax_...``."""

    leaks: bool = False
    threads: bool = False
    files: bool = False
    max_traces: int | None = None
    max_compiles: int | None = None


HELP = {
    "leaks": "no handler, setting or value of a trace is left behind by a test",
    "threads": "the threads that a test starts have ended",
    "files": "the temporary files that a test makes are removed",
    "max_traces": "the most functions that a test may trace, without its fixtures",
    "max_compiles": "the most programs that a test may compile, without its fixtures",
}
UNCHECKED = Checks()
ASKED: pytest.StashKey[Checks] = pytest.StashKey()  # of a session: what the ini file asks for
CHECKS: pytest.StashKey[Checks] = pytest.StashKey()  # of a test that has begun
FAILED: pytest.StashKey[bool] = pytest.StashKey()  # of a test: it has failed by itself
SEED: pytest.StashKey[int] = pytest.StashKey()  # of a test: the seed that its fixtures took


# options


def _is_flag(name: str) -> bool:
    return type(getattr(UNCHECKED, name)) is bool


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("handlax")
    group.addoption("--handlax-seed", type=int, default=0, metavar="N",
                    help="the number from which, with the name of a test, the seed of its rng and key derives")
    group.addoption("--handlax-update", action="store_true", help="write the snapshots of programs anew")
    group.addoption("--handlax-devices", type=int, metavar="N", help="how many devices the CPU is")
    parser.addini("handlax_devices", "how many devices the CPU is")
    for name, text in HELP.items():
        kind: Literal["bool", "string"] = "bool" if _is_flag(name) else "string"
        parser.addini(f"handlax_{name}", text, type=kind)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Set the number of devices before a conftest can use them: it is fixed when the client is made.

    pytest rewrites the asserts of all modules of the distribution of a plug-in; those of the package need none.
    """
    getattr(early_config.pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("handlax")
    text = early_config.known_args_namespace.handlax_devices or early_config.getini("handlax_devices")
    if text:
        os.environ[DEVICES] = str(_number("handlax_devices", text))


def pytest_configure(config: pytest.Config) -> None:
    words = ", ".join([f"{name}: {text}" for name, text in HELP.items()])
    config.addinivalue_line("markers", f"handlax(leaks=..., max_traces=...): checks of a test. {words}")
    given = {name: config.getini(f"handlax_{name}") for name in Checks._fields}
    config.stash[ASKED] = _with(UNCHECKED, {name: value for name, value in given.items() if value}, "handlax_")


def _number(name: str, text: Any) -> int:
    """A number of an option. Raises: UsageError: it is none, or it is negative."""
    try:
        value = int(text)
    except (TypeError, ValueError):
        value = -1
    if value < 0 or isinstance(text, bool):
        raise pytest.UsageError(f"{name} must be a number, got {text!r}.")
    return value


def _with(checks: Checks, words: dict[str, Any], prefix: str) -> Checks:
    """The checks with some replaced. Raises: UsageError: there is no such check, or it cannot have the value."""
    unknown = [name for name in words if name not in HELP]
    if unknown:
        raise pytest.UsageError(f"pytest.mark.handlax takes {', '.join(HELP)}, got {', '.join(unknown)}.")
    values: dict[str, Any] = {
        name: value if value is None or _is_flag(name) else _number(prefix + name, value)
        for name, value in words.items()
    }
    return checks._replace(**values)


# checks of a test


def _checks_of(item: pytest.Item) -> Checks:
    """The checks of a test: those of the ini file, changed by its markers; the nearest marker has the last word."""
    checks = item.config.stash[ASKED]
    for mark in reversed([*item.iter_markers("handlax")]):
        try:
            checks = _with(checks, {**dict.fromkeys(map(repr, mark.args)), **mark.kwargs}, "")
        except pytest.UsageError as error:
            pytest.fail(str(error), pytrace=False)
    return checks


def _begin(item: pytest.Item) -> Checks:
    """The checks of a test, which begin before the first fixture that is its own, or else before its function.

    The finalizer that is added first is called last: after those fixtures, and before any that other tests share.
    """
    begun = item.stash.get(CHECKS, None)
    if begun is not None:
        return begun
    checks = item.stash[CHECKS] = _checks_of(item)
    if not (checks.leaks or checks.threads or checks.files):
        return checks
    left_behind = import_module("handlax.testing.faults.left_behind")
    kinds = [kind for word, kinds in left_behind.OF_TESTS.items() if getattr(checks, word) for kind in kinds]
    before = left_behind.Before(*kinds)

    def end() -> None:
        found = before.changes()
        if found and not item.stash.get(FAILED, False):
            pytest.fail("\n".join(found), pytrace=False)

    item.addfinalizer(end)
    return checks


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> None:
    if request.scope == "function":
        _begin(request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    checks = _begin(item)
    if checks.max_traces is None and checks.max_compiles is None:
        return (yield)
    part = import_module("handlax.testing.pytest_plugin.trace_counts")
    with part.counting() as count:
        result = yield
    found = part.over_limits(count, checks.max_traces, checks.max_compiles)
    if found:
        pytest.fail(found, pytrace=False)
    return result


# snapshots


def _snapshots(request: pytest.FixtureRequest, kind: str) -> Generator[Any, None, None]:
    part = import_module("handlax.testing.pytest_plugin.snapshots")
    module, _, test = request.node.nodeid.partition("::")
    folder = request.path.parent / "snapshots" / request.path.stem
    snapshots = part.Snapshots(
        folder, test or module, getattr(part, kind), request.config.getoption("--handlax-update")
    )
    yield snapshots
    snapshots.end()


@pytest.fixture
def stablehlo_snapshot(request: pytest.FixtureRequest) -> Generator[Any, None, None]:
    """``stablehlo_snapshot(f)(*args)`` compares the StableHLO of ``f`` with what is recorded beside the test."""
    yield from _snapshots(request, "STABLEHLO")


@pytest.fixture
def program_snapshot(request: pytest.FixtureRequest) -> Generator[Any, None, None]:
    """``program_snapshot(f)(*args)`` compares the program of ``f`` with what is recorded beside the test."""
    yield from _snapshots(request, "PROGRAM")


# seeds


def seed_of(number: int, name: str) -> int:
    """The seed of a test of this name: the same in every run, in every process and on every machine."""
    return zlib.crc32(f"{number}:{name}".encode())


def _seed(request: pytest.FixtureRequest) -> int:
    node: pytest.Item = request.node
    return node.stash.setdefault(SEED, seed_of(request.config.getoption("--handlax-seed"), node.nodeid))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """NumPy's generator, whose seed derives from the name of the test and from ``--handlax-seed``."""
    return import_module("numpy.random").default_rng(_seed(request))


@pytest.fixture
def key(request: pytest.FixtureRequest) -> Any:
    """A key of ``handlax.random``, whose seed derives from the name of the test and from ``--handlax-seed``."""
    return import_module("handlax").random.key(_seed(request))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    seed = item.stash.get(SEED, None)
    if report.failed:
        item.stash[FAILED] = True
    if report.failed and seed is not None:
        number = item.config.getoption("--handlax-seed")
        report.sections.append(("handlax", f"the seed of rng and key is {seed}, by --handlax-seed={number}."))
    return report
