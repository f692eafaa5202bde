"""``python -m handlax``: what a report of a fault should say of versions, devices, settings and caches."""

import argparse

from . import print_environment_info

if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m handlax",
        description="Print what a report of a fault should say of versions, devices, settings and caches.",
        epilog="python -m handlax.explain script.py prints where the time of a script goes.",
    ).parse_args()
    print_environment_info()
