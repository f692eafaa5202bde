"""Operands and fields that do not fit an operation are refused before anything is computed, at the user's line."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax, random
from handlax import numpy as hnp
from handlax import operations as ops
from handlax.lax import linalg

A, B, V, S, Z = hnp.ones((2, 3)), hnp.ones((3, 2)), hnp.ones(3), hnp.float32(1), hnp.ones((2, 3), "complex64")
I, D, K = hnp.ones(3, "int32"), hnp.ones((2, 3), "float64"), random.key(0)
Q = hnp.eye(3)


def dot(x, y, contracting, batch=((), ()), **options):
    return lax.dot_general(x, y, (contracting, batch), **options)


def gathered(index, offset, collapsed, mapped, sizes, x=A, **batching):
    dims = lax.GatherDimensionNumbers(offset, collapsed, mapped, **batching)
    return lax.gather(x, np.array(index, np.int32), dims, sizes)


def scattered(index, updates, window, inserted, mapped):
    dims = lax.ScatterDimensionNumbers(window, inserted, mapped)
    return lax.scatter(A, np.array(index, np.int32), np.ones(updates, np.float32), dims)


def perform(op, *operands):
    return hx.perform(op, *map(hnp.asarray, operands))


REFUSED = {
    "dot_general: a dimension twice": (lambda: dot(A, A, ((1, 1), (0, 0))), "distinct"),
    "dot_general: no such dimension": (lambda: dot(A, A, ((5,), (0,))), "dimensions"),
    "dot_general: more of one": (lambda: dot(A, B, ((1, 0), (0,))), "as many"),
    "dot_general: the left one transposed": (lambda: dot(hnp.ones((3, 4)), V, ((1,), (0,))), "agree"),
    "dot_general: keys": (lambda: perform(ops.DotGeneral((((), ()), ((), ()))), K, K), "dot_general"),
    "dot_general: a narrower result": (lambda: dot(I, I, ((0,), (0,)), preferred_element_type="int8"), "i32[3]"),
    "dot_general: a real result": (lambda: dot(Z, B, ((1,), (0,)), preferred_element_type="float32"), "c64[2,3]"),
    "dot_general: three precisions": (lambda: dot(A, B, ((1,), (0,)), precision=("high",) * 3), "precision"),
    "dot_general: no precision": (lambda: dot(A, B, ((1,), (0,)), precision=("high", 3)), "precision"),
    "dot: three dimensions": (lambda: lax.dot(A[None], B), "dot"),
    "dot: three dimensions on the right": (lambda: lax.dot(A, B[None]), "dot"),
    "batch_matmul: vectors": (lambda: lax.batch_matmul(V, V), "batch_matmul"),
    "batch_matmul: other ranks": (lambda: lax.batch_matmul(A, B[None]), "batch_matmul"),
    "reduce_precision: no exponent": (lambda: lax.reduce_precision(A, 0, 3), "reduce_precision"),
    "reduce_precision: a negative mantissa": (lambda: lax.reduce_precision(A, 3, -1), "reduce_precision"),
    "select_n: no case": (lambda: perform(ops.SelectN(), True), "select_n"),
    "select_n: three cases of two": (lambda: perform(ops.SelectN(), True, A, A, A), "select_n"),
    "select_n: other dtypes": (lambda: perform(ops.SelectN(), True, A, D), "select_n"),
    "select_n: other shapes": (lambda: perform(ops.SelectN(), hnp.ones((2, 3), bool), A, B), "select_n"),
    "bitcast: a scalar to more bits": (lambda: lax.bitcast_convert_type(S, "float64"), "bitcast"),
    "bitcast: other than the parts": (lambda: lax.bitcast_convert_type(V, "float64"), "bitcast"),
    "fft: reals of complex numbers": (lambda: lax.fft(Z, "RFFT", (3,)), "reals"),
    "fft: complex numbers of reals": (lambda: perform(ops.Fft(lax.FftType.FFT, (3,)), A), "complex numbers"),
    "fft: no kind": (lambda: lax.fft(Z, "Fft", (3,)), "FFT"),
    "fft: more lengths than dimensions": (lambda: lax.fft(Z, "FFT", (2, 3, 3)), "fft"),
    "sin: no accuracy": (lambda: lax.sin(S, accuracy=0.1), "accuracy"),
    "dynamic_slice: one start": (lambda: perform(ops.DynamicSlice((1, 1)), A, 0), "start"),
    "dynamic_slice: starts of two dtypes": (
        lambda: perform(ops.DynamicSlice((1, 1)), A, I[0], hnp.zeros((), "int64")), "of one dtype"),
    "dynamic_slice: too large": (lambda: lax.dynamic_slice(A, (0, 0), (3, 3)), "dynamic_slice"),
    "dynamic_slice: a negative size": (lambda: lax.dynamic_slice(A, (0, 0), (-1, 3)), "dynamic_slice"),
    "dynamic_slice: a matrix of starts": (lambda: lax.dynamic_slice(A, hnp.ones((1, 2), int), (1, 1)), "start"),
    "dynamic_update_slice: another dtype": (lambda: perform(ops.DynamicUpdateSlice(), A, D, 0, 0), "dynamic_update"),
    "dynamic_update_slice: another rank": (lambda: lax.dynamic_update_slice(A, V, (0, 0)), "dynamic_update"),
    "dynamic_update_index: another rank": (lambda: lax.dynamic_update_index_in_dim(A[None], V, 0, 0), "dynamic_update"),
    "gather: a scalar index": (lambda: gathered(0, (0,), (0,), (0,), (1, 3)), "gather"),
    "gather: two numbers for one dimension": (lambda: gathered([0, 0], (0,), (0,), (0,), (1, 3)), "gather"),
    "gather: dimensions out of order": (lambda: gathered([0], (1, 0), (), (0,), (1, 3)), "gather"),
    "gather: collapsed twice": (lambda: gathered([0], (), (0, 0), (0,), (1, 1)), "gather"),
    "gather: mapped twice": (lambda: gathered([0, 0], (0,), (0,), (0, 0), (1, 3)), "gather"),
    "gather: no such dimension": (lambda: gathered([0], (0,), (5,), (0,), (1, 3)), "gather"),
    "gather: sizes for another rank": (lambda: gathered([0], (0,), (0,), (0,), (1,)), "gather"),
    "gather: a slice too large": (lambda: gathered([0], (0, 1), (), (0,), (1, 4)), "gather"),
    "gather: a collapsed slice of two": (lambda: gathered([0], (0,), (0,), (0,), (2, 3)), "gather"),
    "gather: dimensions of slices left out": (lambda: gathered([0], (), (0,), (0,), (1, 3)), "gather"),
    "gather: dimensions of no result": (lambda: gathered([0], (5,), (0,), (0,), (1, 3)), "gather"),
    "gather: batches of one alone": (
        lambda: gathered([0], (), (), (1,), (1, 1), operand_batching_dims=(0,)), "gather"),
    "gather: batches of the last dimension": (lambda: gathered(
        [[0], [0]], (), (), (1,), (1, 1), operand_batching_dims=(0,), start_indices_batching_dims=(1,)), "gather"),
    "gather: batches of other sizes": (lambda: gathered(
        [[0]] * 3, (), (1,), (1,), (1, 1), operand_batching_dims=(0,), start_indices_batching_dims=(0,)), "gather"),
    "scatter: dimensions of no update": (lambda: scattered([0], (3,), (5,), (0,), (0,)), "scatter"),
    "scatter: dimensions of windows left out": (lambda: scattered([0], (3,), (), (0,), (0,)), "scatter"),
    "scatter: updates for other indices": (lambda: scattered([[0]], (2, 3), (1,), (0,), (0,)), "scatter"),
    "scatter_apply: another type": (lambda: lax.scatter_apply(
        A, np.array([0], np.int32), lambda x: x > 0, lax.ScatterDimensionNumbers((0,), (0,), (0,)),
        update_shape=(3,)), "scatter_apply"),
    "index_take: other axes": (lambda: lax.index_take(A, [I], (0, 1)), "index_take"),
    "index_take: matrices": (lambda: lax.index_take(A, [hnp.ones((1, 1), int)], (0,)), "index_take"),
    "index_take: nothing": (lambda: lax.index_take(A, [], ()), "index_take"),
    "householder_product: another dtype": (
        lambda: perform(ops.HouseholderProduct(), Q, hnp.ones(3, "float64")), "householder_product"),
    "householder_product: other batches": (lambda: linalg.householder_product(Q, A), "householder_product"),
    "householder_product: a scalar": (lambda: linalg.householder_product(Q, S), "householder_product"),
    "householder_product: too many": (lambda: linalg.householder_product(Q, hnp.ones(4)), "householder_product"),
    "householder_product: a wide matrix": (lambda: linalg.householder_product(A, hnp.ones(2)), "householder_product"),
    "triangular_solve: another dtype": (
        lambda: perform(ops.TriangularSolve(True, True, False, False, False), Q, hnp.eye(3, dtype="float64")), "tria"),
    "triangular_solve: another rank": (lambda: linalg.triangular_solve(Q, B[None], left_side=True), "triangular_solve"),
    "triangular_solve: other batches": (
        lambda: linalg.triangular_solve(hnp.stack([Q, Q]), B[None], left_side=True), "triangular_solve"),
    "triangular_solve: other rows": (lambda: linalg.triangular_solve(Q, A, left_side=True), "row"),
    "triangular_solve: other columns": (lambda: linalg.triangular_solve(Q, B), "column"),
    "tridiagonal_solve: scalars": (lambda: linalg.tridiagonal_solve(S, S, S, V), "tridiagonal_solve"),
    "tridiagonal_solve: diagonals of other sizes": (
        lambda: linalg.tridiagonal_solve(V, V, hnp.ones(4), hnp.ones((3, 1))), "tridiagonal_solve"),
    "lu_pivots: a scalar": (lambda: linalg.lu_pivots_to_permutation(hnp.int32(0), 3), "lu_pivots_to_permutation"),
    "schur: a choice": (lambda: linalg.schur(Q, select_callable=lambda x: x > 0), "schur"),
    "iota: truth": (lambda: lax.iota(bool, 3), "iota"),
    "full: of an array": (lambda: lax.full((2,), V), "full"),
    "reshape: in an order": (lambda: lax.reshape(A, (6,), dimensions=(1, 1)), "permutation"),
    "transpose: a dimension twice": (lambda: lax.transpose(A, (0, 0)), "transpose"),
    "squeeze: what is not 1": (lambda: lax.squeeze(A, (0,)), "squeeze"),
    "collapse: backwards": (lambda: lax.collapse(A, 2, 1), "collapse"),
    "stack: nothing": (lambda: lax.stack([]), "stack"),
    "tile: too few counts": (lambda: lax.tile(A, (2,)), "tile"),
    "broadcast_in_dim: too few dimensions": (lambda: lax.broadcast_in_dim(A, (2, 3), (0,)), "broadcast_in_dim"),
    "broadcast_in_dim: out of order": (
        lambda: perform(ops.BroadcastInDim((2, 2), (1, 0)), hnp.ones((2, 2))), "broadcast_in_dim"),
    "broadcast_to_rank: less": (lambda: lax.broadcast_to_rank(A, 1), "broadcast_to_rank"),
    "pad: by an array": (lambda: perform(ops.Pad(((0, 0, 0),)), V, V), "pad"),
    "pad: another dtype": (lambda: perform(ops.Pad(((0, 0, 0),)), V, hnp.zeros((), "float64")), "pad"),
    "pad: less than nothing": (lambda: lax.pad(V, 0.0, ((-5, 0, 0),)), "pad"),
    "pad: negative within": (lambda: lax.pad(V, 0.0, ((0, 0, -1),)), "pad"),
    "rev: no such dimension": (lambda: perform(ops.Rev((3,)), A), "rev"),
    "rev: a dimension twice": (lambda: perform(ops.Rev((0, 0)), A), "rev"),
    "concatenate: nothing": (lambda: lax.concatenate([], 0), "concatenate"),
    "concatenate: other dtypes": (lambda: perform(ops.Concatenate(0), A, D), "concatenate"),
    "split: a negative size": (lambda: lax.split(V, (4, -1)), "split"),
    "index_in_dim: no such index": (lambda: lax.index_in_dim(V, 3), "index"),
    "reduce_sum: a dimension twice": (lambda: perform(ops.ReduceSum((0, 0)), A), "axes"),
    "reduce_sum: no such dimension": (lambda: perform(ops.ReduceSum((-1,)), A), "axes"),
    "argmax: of nothing": (lambda: lax.argmax(hnp.zeros((0, 3)), 0, "int32"), "arg"),
    "associative_scan: nothing": (lambda: lax.associative_scan(lax.add, []), "associative_scan"),
    "associative_scan: other sizes": (lambda: lax.associative_scan(lax.add, (V, hnp.ones(4))), "associative_scan"),
    "reduce: nothing": (lambda: lax.reduce((), (), lambda a, b: a, (0,)), "reduce"),
    "reduce: a start too many": (lambda: lax.reduce((V,), (0.0, 0.0), lambda a, b: a, (0,)), "reduce"),
    "reduce: other shapes": (lambda: lax.reduce((V, A), (0.0, 0.0), lambda a, b: a, (0,)), "reduce"),
    "reduce: starts that are arrays": (lambda: lax.reduce(V, V, lax.add, (0,)), "starts must be scalars"),
    "reduce: starts for each column": (lambda: lax.reduce(A, V, lax.add, (0,)), "starts must be scalars"),
    "reduce: starts of a function": (lambda: lax.reduce(A, V, lambda a, b: a - b, (0,)), "starts must be scalars"),
    "reduce_window: starts that are arrays": (
        lambda: lax.reduce_window(V, V, lax.add, (2,), (1,), "VALID"), "starts must be scalars"),
    "reduce: no such dimension": (lambda: lax.reduce(V, 0.0, lambda a, b: a * b + a, (3,)), "reduce"),
    "reduce: another structure": (lambda: lax.reduce(V, 0.0, lambda a, b: (a, b), (0,)), "reduce"),
    "reduce: another type": (lambda: lax.reduce(V, 0.0, lambda a, b: a > b, (0,)), "reduce"),
    "sort: nothing": (lambda: lax.sort(()), "sort"),
    "sort: other shapes": (lambda: lax.sort((V, hnp.ones(4))), "sort"),
    "sort: keys of a random generator": (lambda: lax.sort(random.split(K)), "sort"),
    "top_k: complex numbers": (lambda: lax.top_k(Z, 1), "top_k"),
    "random_bits: seven bits": (lambda: random.bits(K, (2,), "int7"), "int7"),
    "fold_in: another dtype": (lambda: perform(ops.RandomFoldIn(), K, I), "fold_in"),
    "fold_in: other shapes": (lambda: perform(ops.RandomFoldIn(), random.split(K), hnp.ones(3, "uint32")), "fold_in"),
    "random_seed: floats": (lambda: perform(ops.RandomSeed(), S), "random_seed"),
    "random_wrap: another dtype": (lambda: perform(ops.RandomWrap(K.dtype), hnp.ones(2)), "uint32"),
    "random_wrap: other words": (lambda: perform(ops.RandomWrap(K.dtype), hnp.ones(3, "uint32")), "uint32"),
    "random_unwrap: no keys": (lambda: perform(ops.RandomUnwrap(), I), "random_unwrap"),
    "threefry: no words": (lambda: perform(ops.Threefry2x32(), *[S] * 4), "threefry"),
    "conv: other ranks": (lambda: lax.conv(A[None], A[None, None], (1,), "SAME"), "conv"),
    "conv: no window": (lambda: lax.conv(V, V, (), "SAME"), "conv"),
    "conv: names of dimensions": (
        lambda: lax.conv_general_dilated(A[None], A[None], (1,), "SAME", dimension_numbers=("NC", "OIH", "NCH")),
        "one letter"),
    "conv: a role left out": (
        lambda: lax.conv_general_dilated(A[None], A[None], (1,), "SAME", dimension_numbers=("NXH", "OIH", "NCH")), "C"),
    "conv_transpose: padding": (lambda: lax.conv_transpose(A[None], A[None], (1,), "FULL"), "padding"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_at_the_users_line(name):
    call, word = REFUSED[name]
    with pytest.raises(errors.HandlaxError) as found:
        call()
    assert word in found.value.what and found.value.where.startswith("at test_operands.py:")
