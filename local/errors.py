class LocalStackError(Exception):
    """One sentence for the person at the terminal: what happened, and what to do about it."""
