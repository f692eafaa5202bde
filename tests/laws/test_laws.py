"""Every operation, every law that applies to it, over all its dtypes and shapes."""

from __future__ import annotations

import functools
import importlib
import math
import pathlib
import re
import sys
import zlib
from contextlib import suppress

import numpy as np
import pytest

import handlax
from handlax.effects.core.columns import SHARDING_RULE
from handlax.effects.core.operation import OPERATIONS, Operation
from handlax.effects.operations.elementwise.conversion import ConvertElementType
from handlax.effects.operations.foundations.elementwise_factory import Elementwise
from handlax.testing import OPERATION_LAWS, Inapplicable
from handlax.testing.operation_checks import NUMBERS
from handlax.testing.operation_laws import LANE_COUNT, NARROW, Together, lacking_rules
from handlax.testing.strategies.domains import elementwise_shapes

FAMILIES = sorted(path.stem for path in pathlib.Path(__file__).parent.glob("inputs_*.py"))
CASES = [case for family in FAMILIES for case in importlib.import_module(f"laws.{family}").CASES]
WIDE = frozenset(map(np.dtype, ("float64", "complex128")))  # narrower ones are checked too, in one shape
# The laws that take some ten milliseconds for each pair of a dtype and shapes, most of them to compile it.
LONG = ("compiled", "vmap", "partial_eval", "commutes", "text", "tangent_types", "decomposition", "ragged", "sharding")
CASES_OF = {kind: [case for case in CASES if type(case.op) is kind] for kind in [type(case.op) for case in CASES]}


def family(case, law):
    """The dtypes of a case in which a law is checked, sorted by name: all, for derivatives real and complex ones."""
    found = case.dtypes.intersection(*[NUMBERS[name] for name in law.needs if name in NUMBERS])
    return sorted(found, key=lambda dtype: dtype.name)


def dealt(case, law):
    """Some of these dtypes, for derivatives wide ones: each is dealt to one of the operation's cases that have it, and
    to each case one at least. A conversion has all, which are what it is about; rows are moved, and arrays cut,
    whatever is in them.
    """
    dtypes, cases = family(case, law), CASES_OF[type(case.op)]
    if "reals" in law.needs:
        dtypes = [dtype for dtype in dtypes if dtype in WIDE] or dtypes
    if law.name in ("ragged", "sharding"):
        return dtypes[-1:]
    if isinstance(case.op, ConvertElementType):
        return dtypes
    own = []
    for turn, dtype in enumerate(sorted(frozenset().union(*[each.dtypes for each in cases]), key=lambda d: d.name)):
        holders = [each for each in cases if dtype in each.dtypes]
        if dtype in dtypes and holders[turn % len(holders)] is case:
            own.append(dtype)
    return own or [dtypes[cases.index(case) % len(dtypes)]]


def examples(case, law, *, dtypes=None, all_pairs=True):
    """One draw for every dtype and shape, or one for each lane; for derivatives, in one shape of narrow dtypes.

    Without ``all_pairs`` the shapes, six at most, are dealt out to the dtypes, and each has one of at least half as
    many elements as the largest; for derivatives there are complex ones in one shape. What XLA compiles for each shape
    anew has the largest one, with an even dimension if it is cut over two devices, or, if it is elementwise, those of
    at least half as many elements in turn.
    """
    dtypes = family(case, law) if dtypes is None else dtypes
    every = case.shapes if all_pairs else case.shapes[:6]
    size = {shapes: sum(map(math.prod, shapes)) for shapes in every}
    if not all_pairs and law.name in ("commutes", "sharding"):
        is_even = lambda shapes: any(n % 2 == 0 < n for shape in shapes for n in shape)
        every = [max(every, key=lambda shapes: (law.name == "sharding" and is_even(shapes), size[shapes]))]
    elif not all_pairs and law.name == "compiled" and case.shapes == elementwise_shapes(len(case.domains)):
        every = [shapes for shapes in every if 2 * size[shapes] >= max(size.values())][: len(dtypes)]
    hands = min(len(dtypes), len(every))
    for turn, dtype in enumerate(dtypes):
        some = [shapes for i, shapes in enumerate(every) if i % hands == turn % hands]
        chosen = some if 2 * max(map(size.get, some)) >= max(size.values()) else {*some, max(every, key=size.get)}
        for i, shapes in enumerate(every):
            if not (all_pairs or "reals" in law.needs or shapes in chosen):
                continue
            if "reals" in law.needs and i > 2 and len(every) > 4:
                break
            short = dtype in NARROW or (not all_pairs and dtype.kind == "c")
            one_shape = ("reals" in law.needs and short) or law.name in ("tangent_types", "narrow_derivatives")
            if one_shape and i != min(1, len(every) - 1):
                continue
            seed = zlib.crc32(f"{case} {dtype.name} {shapes}".encode())
            rng = np.random.default_rng(seed)
            for _ in range(LANE_COUNT if "lanes" in law.wants else 1):
                yield case.draw(dtype, shapes, rng, extremes="extremes" in law.wants)


@functools.cache
def cut_in_the_sweep():
    """Four in five of the elementwise operations, which have one sharding rule: the others show whether it is right,
    with one operand and with several, and what the parts give is XLA's.
    """
    rule = SHARDING_RULE.complete().cell
    alike = [kind for kind in CASES_OF if issubclass(kind, Elementwise) and rule(kind) is rule(Elementwise)]
    return {*alike} - {*alike[::5]}


def check(kind, laws, all_pairs):
    """Check laws of all cases of an operation, by all examples, or by those that are dealt to each case; those laws for
    which operations are compiled, of all cases together.

    Without ``all_pairs`` it is checked of some of the cases, if there are many, that transformations commute, and of
    cases that differ in their numbers alone one is cut.
    """
    every = CASES_OF[kind]
    some = {"commutes": every[:: len(every) // 8 | 1],  # of flags, each is on and off
            "sharding": [*{(case.op, case.shapes): case for case in every}.values()]}
    for law in laws:
        if law.reason({**kind.exempt, **lacking_rules(kind)}) is not None:
            continue
        if law.name == "sharding" and not all_pairs and kind in cut_in_the_sweep():
            continue
        together = []
        for case in every if all_pairs else some.get(law.name, every):
            if not (dtypes := family(case, law)):
                continue
            draws = examples(case, law, dtypes=dtypes if all_pairs else dealt(case, law), all_pairs=all_pairs)
            if isinstance(law.check, Together):
                together += [(case.op, operands) for operands in draws]
            else:
                with suppress(Inapplicable):
                    law.check(case.op, [*draws])
        if together:
            with suppress(Inapplicable):
                law.check.of_cases(together)


@pytest.mark.parametrize("kind", CASES_OF, ids=lambda kind: kind.name)
def test_laws(kind):
    check(kind, [law for law in OPERATION_LAWS if law.name not in LONG], True)


@pytest.mark.parametrize("all_pairs", [False, pytest.param(True, marks=pytest.mark.sweep)], ids=["dealt", "all"])
@pytest.mark.parametrize("kind", CASES_OF, ids=lambda kind: kind.name)
def test_long_laws(kind, all_pairs):
    check(kind, [law for law in OPERATION_LAWS if law.name in LONG], all_pairs)


def operations():
    for name in handlax.__all__:  # some are imported at first access
        getattr(handlax, name)
    ours = [kind for kind in OPERATIONS.values() if kind.__module__.startswith("handlax.effects")]
    return {kind for kind in ours if stands_in_its_module(kind)}


def pure_operations():
    return {kind for kind in operations() if not kind.effectful}


def stands_in_its_module(kind):
    """Whether the package has this operation: one of an example in a docstring is in no module."""
    return kind in vars(sys.modules[kind.__module__]).values()


def test_every_operation_has_a_case_or_a_reason():
    covered = {type(case.op) for case in CASES}
    without = {kind for kind in pure_operations() - covered if not kind.exempt and not kind.bodied}
    names = sorted(kind.name for kind in without)
    assert not without, f"operations without a case: {names}; add one to a list in tests/laws/inputs_*.py"


def test_exemptions_name_laws_and_say_why():
    names = {law.name for law in OPERATION_LAWS} | {"jvp", "transpose", "batch", "evaluate", "lower"}
    for kind in pure_operations():
        assert issubclass(kind, Operation)
        for law, reason in kind.exempt.items():
            assert law in names, f"{kind.name}: no law {law!r}"
            assert len(reason) > 10, f"{kind.name}: {law} without a reason"


def test_the_documentation_lists_every_exemption_once():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "reference" / "rules.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("- ")]
    reasons = {(kind.name, law): reason for kind in operations() for law, reason in kind.exempt.items()}
    for (name, law), reason in reasons.items():
        assert any(f"`{name}`" in line and law in line and reason in line for line in lines), f"{name}: {law}: {reason}"
    assert sum(len(re.findall(r"`\w+`", line.partition(":")[0])) for line in lines) == len(reasons)
