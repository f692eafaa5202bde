"""Random programs with effects and handlers, written as data, printed as Python text, and executed by the library."""
