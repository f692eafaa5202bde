"""Differential testing: functions that are to give the same are compared on generated inputs.

    compare(f, g, inputs=st.tuples(arrays()))       functions, of which some may be another library's
    compare(f, inputs=...)                          one function: by NumPy, by XLA, without optimisation, on devices
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky, NoSuchExample
from hypothesis.strategies import SearchStrategy

from ..effects.base.config import configure
from ..effects.base.errors import BadArgument
from ..effects.base.wrapping import name_of
from ..effects.core.arrays import as_array
from ..effects.sharding.named_sharding import NamedSharding
from ..effects.sharding.partition_spec import PartitionSpec
from ..effects.trees import pytrees
from ..lowering.arrays.device_put import device_put
from ..lowering.jit.devices import local_devices
from ..lowering.jit.jit import jit
from ..sharding import AxisType, make_mesh
from .closeness import assert_results_equal
from .generator.reducing import OutOfTime
from .law import Example, Law, Report, check_laws
from .run_differences import first_difference

Compared = Callable[..., Any]


class Way(NamedTuple):
    """A way to execute a function: its name, and a transformation that changes no result.

    ``missing()`` says why it cannot be tried on this machine; None: it can.
    """

    name: str
    transform: Callable[[Compared], Compared]
    missing: Callable[[], str | None] = lambda: None


def unoptimized(f: Compared) -> Compared:
    """The function compiled by XLA without the optimisations of its backend."""
    return jit(f, compiler_options={"xla_backend_optimization_level": 0})


def on_devices(f: Compared) -> Compared:
    """The function compiled for several devices, as many as divide the size of an array; each has all of the others."""
    compiled = jit(f)

    def divided(*args: Any) -> Any:
        arrays, devices = pytrees.map(as_array, args), local_devices()
        sizes = {n for x in pytrees.leaves(arrays) for n in x.shape if n}
        counts = [count for count in range(2, len(devices) + 1) if any([n % count == 0 for n in sizes])]
        count = max(counts, default=len(devices))
        mesh = make_mesh((count,), ("devices",), (AxisType.Auto,), devices=devices[:count])

        def placed(x: Any) -> Any:
            axes = [d for d, n in enumerate(x.shape) if n and n % count == 0][:1]
            spec = ["devices" if d in axes else None for d in range(x.ndim)]
            return device_put(x, NamedSharding(mesh, PartitionSpec(*spec)))

        return compiled(*pytrees.map(placed, arrays))

    return divided


def single_device() -> str | None:
    """Why nothing can be divided among devices; None: there are several."""
    devices = local_devices()
    return None if len(devices) > 1 else f"there is one device, {devices[0]}, and nothing to divide"


WAYS = (
    Way("NumPy", configure(disable_jit=True)),  # with loops and branches by Python
    Way("XLA", jit), Way("XLA without optimisation", unoptimized),
    Way("devices", on_devices, single_device),
)
"""The ways to execute a function that ``compare`` compares where it is given no others."""


def compare(
    f: Compared,
    *others: Compared,
    inputs: SearchStrategy[tuple[Any, ...]],
    ways: Sequence[Way] | None = None,
    loose: float = 1.0,
    examples: int = 50,
    seconds: float = 10.0,
    seed: int = 0,
) -> Report:
    """Compare a function with others, and with itself executed in other ways, on inputs that are drawn.

        f(*inputs) == g(*inputs)          f(*inputs) == way(f)(*inputs)

    Results are equal if their trees have one structure, and their leaves one shape, dtype and weakness, and close
    values. A leaf that NumPy or another library gives need have the same kind of dtype alone, since defaults differ: it
    is compared in the narrower dtype of both. Where both raise errors, the class of one must be that of the other, or
    derived from it, and they must return for some inputs.

    The first inputs are the simplest that the strategy draws, then such, if it draws any, with an array that is empty,
    of one element, or of zeros, and with a zero, a negative, an infinite or a large number, NaN, or -0.0: ten inputs,
    which are compared whatever ``seconds`` says. The others are the examples of Hypothesis as it draws them; each fifty
    numbers begin anew.

    Args:
        others: functions that ``f`` is to equal, of NumPy arrays; they may be other libraries'.
        inputs: a strategy for tuples of arguments. NumPy arrays are copied for each function.
        ways: how ``f`` is executed: ``WAYS`` by default if there are no others.
        loose: how many times the tolerance of their dtypes results may differ; see ``assert_close``.
        examples: how many inputs are drawn, for all functions and ways in turn.
        seconds: how long it takes, beyond the first inputs, of which a quarter is kept to make those that show a
            difference simpler.
        seed: the number of the first inputs.

    Raises: LawFails: they differ; with the simplest inputs found, and, if a way differs, the first operation to do so.
    BadArgument: there is nothing to compare with, what is drawn are no tuples, or every input raised.

    >>> import numpy as np
    >>> from hypothesis import strategies as st
    >>> from handlax import numpy as hnp
    >>> print(compare(hnp.sinh, np.sinh, inputs=st.tuples(st.floats(-5, 5)), loose=10.0, examples=10))
    sinh 1: laws that hold: 1
      sinh 2 ...
    """
    ways = () if others and ways is None else WAYS if ways is None else ways
    if not (others or ways):
        raise BadArgument("compare: there must be another function or a way to execute this one, got neither.")
    name, *names = _names([f, *others])
    checks = [Agreement(f, g, (name, other), loose, exact=False) for g, other in zip(others, names)]
    laws = [Law(other, f"{name} equals {other}", check) for check, other in zip(checks, names)]
    for way in ways:
        checks.append(Agreement(way.transform(f), f, (f"{name} by {way.name}", name), loose, exact=True))
        laws.append(Law(way.name, f"{name} is the same by {way.name}", checks[-1]))
    drawn, by_name = DrawnInputs(inputs), {way.name: way for way in ways}

    def show(law: Law, args: Example) -> str:
        """The inputs, and the first operation that a way computes otherwise."""
        way = by_name.get(law.name)
        where = "" if way is None else f"\nThe first operation that differs: {_where(f, way, args)}"
        return f"The inputs: {args}{where}"

    report = check_laws(
        name, laws, drawn.example, lacks={way.name: reason for way in ways if (reason := way.missing()) is not None},
        examples=examples, least=len(EDGES), seconds=seconds, seed=seed, reduce=drawn.simpler, show=show,
    )
    for check in checks:
        if check.raised and not check.returned:
            actual, expected = check.names
            raise BadArgument(
                f"compare: {actual} and {expected} must return for some inputs, every input raised {check.raised}",
                hint="inputs= draws a tuple of the arguments that they take.",
            )
    return report


def _names(functions: Sequence[Compared]) -> list[str]:
    """The names of functions, of several with one name numbered."""
    names = [name_of(f) for f in functions]
    times = Counter(names)
    return [f"{name} {names[:i].count(name) + 1}" if times[name] > 1 else name for i, name in enumerate(names)]


# of the first inputs, which are the simplest, and those with what breaks functions; numbers are arrays of rank 0
EDGES: tuple[Callable[[np.ndarray[Any, Any]], Any], ...] = (
    lambda x: True,
    lambda x: not x.size, lambda x: x.ndim and x.size == 1, lambda x: x.size > 1 and not np.any(x),
    lambda x: np.any(x == 0), lambda x: np.any(x < 0), lambda x: np.any(np.isinf(x)), lambda x: np.any(np.isnan(x)),
    lambda x: np.any(np.abs(x) > np.float64(1e6)),  # float16 has no 1e6
    lambda x: np.any((x == 0) & np.signbit(x)),
)
DRAWN = 50  # examples of a run


def _has(edge: Callable[[Any], Any], args: Any) -> bool:
    """Whether a leaf of the inputs has an edge."""
    for x in pytrees.leaves(args):
        with suppress(TypeError, ValueError):  # keys are no numbers
            if edge(np.asarray(x)):
                return True
    return False


class DrawnInputs:
    """Inputs by number, the same for all laws, and simpler ones in place of the last.

    ``DRAWN`` consecutive numbers have the examples of one run of Hypothesis: of each edge the first that has it, then
    the others as they are drawn. A strategy with fewer examples repeats them.
    """

    def __init__(self, strategy: SearchStrategy[Any]):
        self.strategy = strategy
        self.run: int | None = None  # the number of the last run, which is its seed
        self.drawn: list[Any] = []  # its examples
        self.order: list[int] = []  # their places in it, by the numbers of inputs
        self.place = 0  # that of the last inputs

    def example(self, law: Law, number: int) -> Example:
        """The inputs of a number."""
        run, turn = divmod(number, DRAWN)
        if run != self.run:
            self.run, self.drawn = run, []
            self.search(self.keeps, Phase.generate)
            first = [next((k for k, args in enumerate(self.drawn) if _has(edge, args)), 0) for edge in EDGES]
            self.order = [*dict.fromkeys([*first, *range(len(self.drawn))])]
        self.place = self.order[turn % len(self.order)]
        args = self.drawn[self.place]
        if not isinstance(args, tuple):
            raise BadArgument(
                f"compare: inputs must draw tuples of arguments, got {type(args).__name__}.",
                hint="inputs=st.tuples(strategy) for a single argument.",
            )
        return args

    def keeps(self, args: Any) -> bool:
        """Keep what is drawn, and go on."""
        self.drawn.append(args)
        return False

    def simpler(self, example: Example, fails: Callable[[Example], bool]) -> Example:
        """The simplest inputs found that still fail."""
        simplest, over, before = example, False, iter(range(self.place))

        def shows(args: Any) -> bool:
            nonlocal simplest, over
            if over or next(before, None) is not None:
                return False
            try:
                shown = fails(args)
            except OutOfTime:  # Hypothesis would take it for what is looked for
                over = True
                return False
            simplest = args if shown else simplest
            return shown

        self.search(shows, Phase.generate, Phase.shrink)
        return simplest

    def search(self, condition: Callable[[Any], bool], *phases: Phase) -> None:
        """Draw the examples of the run until the condition holds for one; with ``shrink`` then simpler ones."""
        options = settings(
            max_examples=DRAWN, deadline=None, database=None, phases=phases, suppress_health_check=list(HealthCheck))
        with suppress(NoSuchExample, Flaky):  # flaky where the time has ended
            hypothesis.find(self.strategy, condition, settings=options, random=Random(self.run))


@dataclass(eq=False)
class Agreement:
    """The check that two functions give equal results, or errors of one kind: one's class is that of the other, or is
    derived from it.

    Whether all dtypes must be the same is ``exact``. ``returned``: both gave a result for some inputs; ``raised``: the
    last error that both raised.
    """

    f: Compared
    g: Compared
    names: tuple[str, str]
    loose: float
    exact: bool
    returned: bool = False
    raised: str = ""

    def __call__(self, *args: Any) -> None:
        (actual, error), (expected, other) = _outcome(self.f, args), _outcome(self.g, args)
        if error is None and other is None:
            self.returned = True
            assert_results_equal(actual, expected, self.loose, exact=self.exact, weak=True)
        elif error and other and (isinstance(error, type(other)) or isinstance(other, type(error))):
            self.raised = f"{type(error).__name__}: {error}"
        else:
            raised = [(name, e) for name, e in zip(self.names, (error, other)) if e is not None]
            said = [f"{name} raises {type(e).__name__}: {e}" for name, e in raised]
            raise AssertionError("\n".join(said)) from raised[0][1]


def _outcome(f: Compared, args: Example) -> tuple[Any, Exception | None]:
    """What a function returns for copies of arguments, or the error that it raises."""
    try:
        return f(*pytrees.map(_copied, args)), None
    except Exception as error:
        return None, error


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _where(f: Compared, way: Way, args: Example) -> str:
    """The first operation that a way computes otherwise, or why it is not known."""
    try:
        first = first_difference(f, *args, otherwise=way.transform)
    except Exception as error:  # of a way that is none for a function with more results
        return f"unknown, since {type(error).__name__}: {error}"
    return "none, where the results of all are kept" if first is None else str(first)
