"""Programs that use libraries written for JAX; each public function of a file is one, and returns a tree of numbers.

``tools/libraries.py`` runs them with JAX and with handlax in its place, and compares what they return.
"""
