"""Deletes finished jobs when their time to live is over."""
