"""``python -m pytapeloop`` is the command ``pytapeloop``."""

from ._program import main

main()
