"""Arguments of another kind than those that are meant, as ``make fuzz`` has found them, are refused by our errors."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp

x = hnp.ones(3)
SPEC = hx.sharding.PartitionSpec
MESH = hx.sharding.AbstractMesh((2,), ("i",))
CUT = hx.sharding.NamedSharding(MESH, SPEC("i"))

# name: (the mistake, its class, the builtin that it also is, what the message must say)
OTHER_KINDS = {
    "keep_unused": (lambda: hx.jit(abs, keep_unused=2), errors.BadArgument, ValueError, "False or True, got 2"),
    "a step of 0": (lambda: x.at[::0].set(1.0), errors.BadArgument, ValueError, "must not be 0, got slice(None"),
    "a step of 0 in a read": (lambda: x[::0], errors.BadArgument, ValueError, "must not be 0"),
    "lists of other lengths": (lambda: x[[1, [2, 0]],], errors.ShapeMismatch, ValueError, "equal lengths"),
    "sizes of a mesh": (
        lambda: hx.sharding.AbstractMesh(7, "i"), errors.BadArgument, ValueError, "a sequence, got 7"),
    "types of a mesh": (
        lambda: hx.sharding.AbstractMesh((2,), "i", 7), errors.BadArgument, ValueError, "axis_types must be a seq"),
    "unreduced": (lambda: SPEC(unreduced=7), errors.BadArgument, ValueError, "unreduced must be a sequence, got 7"),
    "a shape of shards": (lambda: CUT.shard_shape(7), errors.BadArgument, ValueError, "a shape must be a sequence"),
    "a size of shards": (lambda: CUT.shard_shape(((2,),)), errors.NotAnInteger, ValueError, "must be an integer"),
    "indices that are arrays": (lambda: hnp.einsum(x, [(x,)]), errors.BadArgument, ValueError, "must be numbers"),
    "optimize": (lambda: hnp.einsum("i", x, optimize=np.arange(2)), errors.BadArgument, ValueError, "optimize"),
    "a word of choices": (
        lambda: hnp.take(x, 0, mode=np.arange(2)),
        errors.BadArgument, ValueError, "mode"),
    "a dtype of records": (lambda: hnp.zeros(2, ","), errors.DTypeMismatch, TypeError, "',' is not a dtype"),
    "half a character": (
        lambda: hx.export.symbolic_shape("\udcb9"), errors.BadShape, ValueError, "sizes must be written"),
}


@pytest.mark.parametrize(("mistake", "kind", "builtin", "said"), OTHER_KINDS.values(), ids=OTHER_KINDS)
def test_an_argument_of_another_kind_is_refused(mistake, kind, builtin, said):
    with pytest.raises(errors.HandlaxError) as caught:
        mistake()
    assert type(caught.value) is kind and isinstance(caught.value, builtin) and said in str(caught.value)
