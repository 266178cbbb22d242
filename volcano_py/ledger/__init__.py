"""What was decided and is not yet confirmed by the watch."""
