"""Decisions that the watch has not confirmed yet."""
