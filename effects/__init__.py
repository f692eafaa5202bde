"""Operations, programs and how they are performed; imports nothing of the other layers."""
