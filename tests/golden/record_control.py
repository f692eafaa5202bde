"""Write ``control.json``: the results of every call in ``control_cases.py`` in JAX.

python -m tests.golden.record_control          writes it
python -m tests.golden.record_control --check  compares with it, operation by operation, under jit and under vmap
"""

from .control_cases import CASES
from .labelled_cases import labelled
from .recorder import main

if __name__ == "__main__":
    main(labelled(CASES), "control.json")
