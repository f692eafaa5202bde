"""Every operation, every law that applies to it, over all its dtypes and shapes."""

from __future__ import annotations

import importlib
import math
import pathlib
import re
import sys
import zlib

import numpy as np
import pytest

import handlax
from handlax.effects.core.operation import OPERATIONS, Operation
from handlax.testing import OPERATION_LAWS, Inapplicable
from handlax.testing.operation_checks import NUMBERS
from handlax.testing.operation_laws import LANES, NARROW

FAMILIES = sorted(path.stem for path in pathlib.Path(__file__).parent.glob("inputs_*.py"))
CASES = [case for family in FAMILIES for case in importlib.import_module(f"laws.{family}").CASES]
WIDE = frozenset(map(np.dtype, ("float64", "complex128")))  # narrower ones are checked too, in one shape
# The laws that take some ten milliseconds for each pair of a dtype and shapes, to compile it or to compute all lanes.
LONG = ("compiled", "vmap", "partial_eval", "commutes", "decomposition", "ragged")


def examples(case, law, *, all_pairs=True):
    """One draw for every dtype and shape, or one for each lane; for derivatives, of the widest dtypes, and in one shape
    of narrower ones.

    Without ``all_pairs`` the shapes are dealt out to the dtypes, and each has one of the largest; for derivatives there
    are the widest dtypes alone, complex ones in one shape.
    """
    family = sorted(family_of(case, law), key=lambda d: d.name)
    if law.name == "ragged" and not all_pairs:  # rows are moved, whatever is in them
        family = family[-1:]
    hands = min(len(family), len(case.shapes))
    size = {shapes: sum(map(math.prod, shapes)) for shapes in case.shapes}
    for turn, dtype in enumerate(family):
        dealt = [shapes for i, shapes in enumerate(case.shapes) if i % hands == turn % hands]
        chosen = {*dealt, max(*dealt, *case.shapes, key=size.get)}
        for i, shapes in enumerate(case.shapes):
            if not (all_pairs or "reals" in law.needs or shapes in chosen):
                continue
            if "reals" in law.needs and i > 2 and len(case.shapes) > 4:
                break
            if "reals" in law.needs and not all_pairs and dtype in NARROW and case.dtypes & WIDE:
                continue
            short = dtype in NARROW or (not all_pairs and dtype.kind == "c")
            one_shape = ("reals" in law.needs and short) or law.name in ("tangent_types", "narrow_derivatives")
            if one_shape and i != min(1, len(case.shapes) - 1):
                continue
            seed = zlib.crc32(f"{case} {dtype.name} {shapes}".encode())
            rng = np.random.default_rng(seed)
            for _ in range(LANES if "lanes" in law.wants else 1):
                yield case.draw(dtype, shapes, rng, extremes="extremes" in law.wants)


def family_of(case, law):
    """The dtypes of a case of which a law is, all, or those of derivatives."""
    return case.dtypes.intersection(*[NUMBERS[name] for name in law.needs if name in NUMBERS])


@pytest.mark.parametrize("law", OPERATION_LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_law(case, law):
    if reason := law.reason(case.op.exempt):
        pytest.skip(f"exempt: {reason}")
    if not family_of(case, law):
        pytest.skip("there is no derivative: the case has no real or complex dtype of these bits")
    try:
        law.check(case.op, list(examples(case, law, all_pairs=law.name not in LONG)))
    except Inapplicable as reason:
        pytest.skip(f"inapplicable: {reason}")


@pytest.mark.sweep
@pytest.mark.parametrize("law", [law for law in OPERATION_LAWS if law.name in LONG], ids=lambda law: law.name)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_long_laws_hold_for_every_dtype_in_every_shape(case, law):
    if law.reason(case.op.exempt) or not family_of(case, law):
        pytest.skip("exempt, or without derivative")
    law.check(case.op, list(examples(case, law)))


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
