"""What the indexes hold besides keys. Small, and seldom changed: every write to a projected attribute is a write to the
index too."""

LISTED = ["name", "status", "schedule_type", "priority", "tags", "last_outcome"]
WATCHED = [
    "status",
    "owner",
    "executor_id",
    "priority",
    "due_at",
    "not_before",
    "generation",
    "put_off_at",
    "late_at",
]
