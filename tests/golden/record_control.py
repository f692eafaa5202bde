"""Write ``control.json``: what every call in ``control_cases.py`` gives in JAX.

python -m tests.golden.record_control          writes it
python -m tests.golden.record_control --check  compares with it, operation by operation, under jit and under vmap
"""

from .cases import labelled
from .control_cases import CASES
from .recorder import main

if __name__ == "__main__":
    main(labelled(CASES), "control.json")
