"""The generator of random programs, which are well-typed and bounded: an author, and vocabularies of statements."""
