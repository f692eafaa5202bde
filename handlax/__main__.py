"""``python -m handlax``: what a report of a fault should say of versions, devices, settings and caches."""

from . import print_environment_info

if __name__ == "__main__":
    print_environment_info()
