"""A handful of jobs through the running stack, for people to watch."""
