"""What the package gives to interpreters outside it is enough to write one."""

import handlax as hx
from handlax import numpy as hnp
from handlax.extend import STACK, Run, installed


def test_a_run_written_outside_sees_what_is_performed_and_passes_it_on():
    names = []

    class Watch(Run):
        def answer(self, op, operands):
            names.append(op.name)
            return self.outer.answer(op, operands)

    with installed(Watch(STACK.get(), "watch")):
        y = hx.grad(lambda x: hnp.sin(x) * x)(0.0)
    assert "sin" in names and "mul" in names
    assert y == 0.0


def test_every_name_is_documented():
    public = [name for name in vars(hx.extend) if not name.startswith("_")]
    undocumented = [name for name in public if name != "STACK" and not getattr(hx.extend, name).__doc__]
    assert len(public) > 15 and not undocumented
