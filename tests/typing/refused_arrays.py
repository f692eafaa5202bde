"""Mistakes with arrays."""

import handlax as hx
from handlax import Array
from handlax import numpy as hnp


def mistakes(x: Array) -> float:
    x + "1"  # error: operator, reportOperatorIssue
    x + [1.0, 2.0]  # error: operator, reportOperatorIssue
    x["a"]  # error: index, reportArgumentType
    x[0] = 1.0  # error: index, reportIndexIssue
    x.at["a"]  # error: index, reportArgumentType
    x.at[0].put(1.0)  # error: attr-defined, reportAttributeAccessIssue
    x.shape = (2, 2)  # error: misc, reportAttributeAccessIssue
    x.sum(axes=0)  # error: call-arg, reportCallIssue
    x.sum(axis="rows")  # error: arg-type, reportArgumentType
    x.summ()  # error: attr-defined, reportAttributeAccessIssue
    hnp.sinn(x)  # error: attr-defined, reportAttributeAccessIssue
    hx.nump  # error: attr-defined, reportAttributeAccessIssue
    hnp.sin()  # error: call-arg, reportCallIssue
    return x.sum()  # error: return-value, reportReturnType
