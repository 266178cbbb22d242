"""The scheduler configuration: its schema, its YAML, its typed arguments; errors name file, line and key."""
