"""A block-sparse matrix as a container: ``vmap`` maps over its stored blocks, or over its rows of blocks.

    python examples/block_sparse.py

Only blocks that are stored are computed. A row of blocks has as many as are stored in it, so that rows are lanes of
different lengths: the container hands its parts over as a ``Ragged``, and needs no mask.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import handlax as hx
from handlax import numpy as hnp


@hx.tree_util.register_dataclass
@dataclass(frozen=True)
class BlockSparse:
    """The matrix with ``blocks[k]`` at row ``rows[k]`` and column ``columns[k]`` of a grid, zeros elsewhere.

    Blocks are stored row by row. A lane sees a ``BlockSparse`` as well: of one block, or of the blocks of one row.
    """

    rows: Any  # i32[stored]
    columns: Any  # i32[stored]
    blocks: Any  # f32[stored, height, width]
    grid: tuple[int, int] = field(metadata={"static": True})

    def to_dense(self) -> Any:
        height, width = self.blocks.shape[1:]
        dense = hnp.zeros((*self.grid, height, width)).at[self.rows, self.columns].set(self.blocks)
        return dense.transpose(0, 2, 1, 3).reshape(self.grid[0] * height, self.grid[1] * width)


class BlockAxis:
    """An axis of a block-sparse matrix."""


by_block, by_row = BlockAxis(), BlockAxis()


def to_elt(cont: Any, get_idx: Any, x: BlockSparse, axis: BlockAxis) -> BlockSparse:
    """What a lane sees."""
    if axis is by_block:
        return BlockSparse(*cont((x.rows, x.columns, x.blocks), 0), x.grid)
    stored = hnp.zeros(x.grid[0], "int32").at[x.rows].add(1)  # how many blocks each row has
    columns, blocks = cont(hx.Ragged((x.columns, x.blocks), stored, longest=x.grid[1]), hx.ragged_axis)
    return BlockSparse(get_idx(), columns, blocks, x.grid)


def from_elt(cont: Any, axis_size: int, y: BlockSparse, axis: BlockAxis) -> BlockSparse:
    """The matrix of the lanes' results."""
    if axis is by_block:
        return BlockSparse(*cont(axis_size, (y.rows, y.columns, y.blocks), 0), y.grid)
    lanes = cont(axis_size, (y.columns, y.blocks), hx.ragged_axis)
    columns, blocks = lanes.data
    rows = hnp.repeat(cont(axis_size, y.rows, 0), lanes.segment_lengths, total_repeat_length=columns.shape[0])
    return BlockSparse(rows, columns, blocks, (axis_size, y.grid[1]))


hx.register_vmappable(BlockSparse, BlockAxis, int, to_elt, from_elt)


def matvec(a: BlockSparse, x: Any) -> Any:
    """``a.to_dense() @ x``, one row of blocks in each lane."""
    parts = x.reshape(a.grid[1], -1)

    def of_row(row: BlockSparse) -> Any:
        products = hnp.einsum("kij,kj->ki", row.blocks, parts[row.columns])  # with k kept, it costs what is stored
        return products.sum(0)

    return hx.vmap(of_row, in_axes=by_row)(a).ravel()


def row_softmax(a: BlockSparse) -> BlockSparse:
    """The softmax of each row of the matrix over the elements that are stored, as block-sparse attention has it."""

    def normalised(row: BlockSparse) -> BlockSparse:
        weights = hx.nn.softmax(row.blocks, axis=(0, 2))
        return BlockSparse(row.rows, row.columns, weights, row.grid)

    return hx.vmap(normalised, in_axes=by_row, out_axes=by_row)(a)


def example(seed: int = 0) -> BlockSparse:
    """Five blocks in a grid of four rows, one of which is empty, and three columns."""
    rows, columns = np.array([0, 0, 1, 3, 3]), np.array([0, 2, 1, 0, 1])
    blocks = np.random.default_rng(seed).standard_normal((5, 2, 3)).astype(np.float32)
    return BlockSparse(hnp.array(rows, "int32"), hnp.array(columns, "int32"), hnp.array(blocks), (4, 3))


def main() -> None:
    a = example()
    x = hnp.linspace(-1.0, 1.0, 9)
    dense = a.to_dense()
    assert hnp.allclose(matvec(a, x), dense @ x, atol=1e-6)

    loss = lambda a: (hx.jit(matvec)(a, x) ** 2).sum()
    gradient = hx.grad(loss, allow_int=True)(a)
    dense_gradient = hx.grad(lambda dense: ((dense @ x) ** 2).sum())(dense)
    for row, column, block in zip(a.rows.tolist(), a.columns.tolist(), gradient.blocks):
        wanted = dense_gradient[2 * row : 2 * row + 2, 3 * column : 3 * column + 3]
        assert hnp.allclose(block, wanted, atol=1e-5)

    sums = row_softmax(a).to_dense().sum(1).round(3)
    print(f"{len(a.blocks)} of {a.grid[0] * a.grid[1]} blocks are stored; rows of the softmax sum to {sums}")


if __name__ == "__main__":
    main()
