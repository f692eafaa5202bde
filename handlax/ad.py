"""``handlax.ad``, under JAX's names: for ``vjp(...)[1].with_refs``, which gradients are wanted and where they go.

    y, pull = vjp(f, x, y);  pull.with_refs(ref, DontWant())(ct)  ==  (GradRef(), DidntWant()),  ref[...] += gradient

An argument's gradient is added to the reference given for it, and ``GradRef()`` stands for it in the result; for
``DontWant()`` it is not computed, and ``DidntWant()`` stands for it; for ``GradValue()`` it is returned.
"""

from .interpreters.transformations.gradient_references import DidntWant as DidntWant
from .interpreters.transformations.gradient_references import DontWant as DontWant
from .interpreters.transformations.gradient_references import GradRef as GradRef
from .interpreters.transformations.gradient_references import GradValue as GradValue
