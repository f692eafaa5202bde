"""The generator of random programs: well-typed, bounded, as Python text or equations, over several vocabularies."""
