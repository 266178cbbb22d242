"""The cluster as the scheduler knows it: events become records and columns, and decisions are assumed until seen."""
