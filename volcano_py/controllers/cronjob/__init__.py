"""Creates jobs by a schedule, and keeps the last ones that are finished."""
