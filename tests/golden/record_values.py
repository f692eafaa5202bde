"""Write ``values.json``: the results of every call in ``labelled_cases.py`` in JAX, with dtype and weak type.

python -m tests.golden.record_values          writes it
python -m tests.golden.record_values --check  compares with it, operation by operation, under jit and under vmap
"""

from .labelled_cases import CASES
from .recorder import main

if __name__ == "__main__":
    main(CASES, "values.json")
