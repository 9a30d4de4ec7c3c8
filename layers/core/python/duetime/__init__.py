"""The domain of Duetime: jobs, runs, and what moves them. No Lambda event is known here."""
