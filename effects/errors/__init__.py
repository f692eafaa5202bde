"""The classes of errors, each with its page: cause, example and remedy; imports nothing of the package."""
