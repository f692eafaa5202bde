"""The layout constraint: the order of a value's dimensions in memory, inside of a program."""

from __future__ import annotations

from ...base.stack import perform
from ...core.columns import data_movement, linear
from ...core.operation import operation
from ...sharding.layout import Layout
from ...sharding.sharding_rules import alike
from ...types.dtypes import is_extended
from .foreign_call import ForeignCall


# y = x, laid out so where a program stores it
@operation
class LayoutConstraint:
    layout: Layout
    sharding_rule = alike

    def result_type(op, x):
        op.layout.check("layout_constraint", x)
        return x

    def evaluate(op, x):
        return x

    def batch(op, dims, x):
        (d,) = dims
        order = (d, *[k + (k >= d) for k in op.layout.major_to_minor])
        return perform(LayoutConstraint(Layout(order)), x), d

    jvp = linear

    def transpose(op, ct, x):
        return perform(op, ct)

    def lower(op, emit, x):
        if is_extended(x.type.dtype):
            return x
        order = (op.layout.major_to_minor,)
        call = ForeignCall("LayoutConstraint", [x.type], operand_layouts=order, result_layouts=order, api_version=1)
        return emit.foreign_call(call, [x])[0]

    flops = data_movement
