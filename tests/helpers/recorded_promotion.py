"""JAX's promotion of dtypes with 64 bits, as recorded by ``tests/golden/record_promotion.py``."""

import json
from pathlib import Path

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "promotion.json").read_text())
NAMES = GOLDEN["names"]
DTYPES = [n for n in NAMES if n not in ("int", "float", "complex")]
