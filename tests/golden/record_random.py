"""Write ``random.json``: the results of every call in ``random_cases.py`` in JAX, keys as their key data.

python -m tests.golden.record_random          writes it
python -m tests.golden.record_random --check  compares with it, operation by operation, under jit and under vmap
"""

from .labelled_cases import labelled
from .random_cases import CASES
from .recorder import main

if __name__ == "__main__":
    main(labelled(CASES), "random.json")
