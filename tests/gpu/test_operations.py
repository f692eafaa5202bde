"""Every operation on an accelerator: compiled there, it gives what NumPy gives."""

import numpy as np
import pytest
from laws.test_laws import CASES_OF, dealt, examples

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.operations.indexing.gather_scatter import Scatter
from handlax.effects.operations.linalg.eig import Eig
from handlax.effects.operations.linalg.eigh import Eigh, EighImplementation
from handlax.effects.operations.linalg.schur import Hessenberg, Schur
from handlax.effects.operations.linalg.svd import Svd, SvdAlgorithm
from handlax.effects.operations.windows.convolution import ConvGeneralDilated
from handlax.effects.trees import pytrees
from handlax.errors import HandlaxError, MissingRule
from handlax.interpreters.core.record import record
from handlax.lowering.compile.stablehlo_modules import lower_program
from handlax.testing import OPERATION_LAWS
from handlax.testing.closeness import assert_close
from handlax.testing.operation_laws import joint

COMPILED = next(law for law in OPERATION_LAWS if law.name == "compiled")
KINDS = [kind for kind in CASES_OF if COMPILED.reason(kind.exempt) is None]
LOOSE = 100.0  # of float32 products that ask for no precision: XLA takes the 10 bits of TensorFloat-32


def lacking(op, operands):
    """Whether a GPU has no counterpart of the LAPACK routine, or no convolution of integers."""
    if isinstance(op, ConvGeneralDilated):
        return any(np.dtype(op.preferred_element_type or x.dtype).kind in "biu" for x in operands)
    return isinstance(op, Schur | Hessenberg) or getattr(op, "pivoting", False) or (isinstance(op, Eig) and op.left)


def drawn(kind):
    """The operation of each case of a class of operations as a function of all its draws, with their operands."""
    for case in CASES_OF[kind]:
        draws = examples(case, COMPILED, dtypes=dealt(case, COMPILED), all_pairs=False)
        function, operands = joint([(case.op, draw) for draw in draws])
        yield case.op, lambda *xs, f=function: pytrees.leaves(f(*xs)), operands


def text(function, operands):
    program = record(lambda *xs: function(*xs), [hx.typeof(x) for x in operands])
    return lower_program(program, "f", platform="cuda").text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_it_is_lowered_for_gpus_without_calls_of_lapack(kind):
    for op, function, operands in drawn(kind):
        if lacking(op, operands):
            with pytest.raises(MissingRule, match=r"ha(s|ve) no (counterpart|convolution).* on the platform 'cuda'"):
                text(function, operands)
        else:
            assert "@lapack_" not in text(function, operands)


@pytest.mark.parametrize("op", [
    Eigh(True, True, True, EighImplementation.QDWH), Svd(False, True, SvdAlgorithm.DIVIDE_AND_CONQUER),
], ids=str)
def test_an_implementation_that_gpus_lack_is_refused(op):
    with pytest.raises(MissingRule, match=r"(there is no|no counterpart).* on the platform 'cuda'"):
        text(lambda x: hx.perform(op, x), [np.eye(3, dtype="float32")])


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_it_gives_what_numpy_gives(kind):
    failures = []
    for op, function, operands in drawn(kind):
        free = isinstance(op, Eig | Eigh | Svd)  # vectors have any phase: see test_linear_algebra.py
        free |= isinstance(op, Scatter) and not op.unique_indices  # the last update of an element may be any
        if free or lacking(op, operands):
            continue
        with hx.default_device(hx.devices("cpu")[0]):
            expected = function(*operands)
        loose = LOOSE if getattr(op, "precision", 0) is None else 1.0
        try:
            for k, (y, z) in enumerate(zip(hx.jit(function)(*operands), expected, strict=True)):
                assert y.devices() == {hx.devices()[0]}
                assert_close(y, z, loose, f"result {k}")
        except (AssertionError, HandlaxError) as error:
            failures.append(f"{op}: {error}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_packed_numbers_are_sorted_and_compared_in_bytes(dtype):
    x = hnp.asarray([3, 1, 2, 1]).astype(dtype)
    for f in (lax.sort, lambda x: lax.sort((hnp.arange(4), x)), hnp.argmax, hnp.argmin):
        program = record(lambda x, f=f: hx.tree.leaves(f(x)), [hx.typeof(x)])
        lines = lower_program(program, "f", platform="cuda").text.splitlines()
        packed = [line for line in lines if "i4>" in line]
        assert packed and all(any(word in line for word in ("convert", "return", "func")) for line in packed)
    np.testing.assert_array_equal(hx.jit(lax.sort)(x), [1, 1, 2, 3])
    assert (int(hx.jit(hnp.argmax)(x)), int(hx.jit(hnp.argmin)(x))) == (0, 1)
