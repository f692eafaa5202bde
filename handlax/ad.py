"""What becomes of each gradient in ``vjp(...)[1].with_refs``, and what stands for it.

    y, pull = vjp(f, x, y);  pull.with_refs(ref, DontWant())(ct)  ==  (GradRef(), DidntWant()),  ref[...] += gradient
"""

from .interpreters.transformations.gradient_references import DidntWant as DidntWant
from .interpreters.transformations.gradient_references import DontWant as DontWant
from .interpreters.transformations.gradient_references import GradRef as GradRef
from .interpreters.transformations.gradient_references import GradValue as GradValue
