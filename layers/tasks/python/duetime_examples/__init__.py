"""Examples of functions for `python` tasks. Put your own package beside this one, and name it in `allowed_targets`."""
