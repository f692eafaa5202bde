"""XLA's clients, one for each platform, and the connection with other processes; may import effects and interpreters.
"""
