"""Keeps in the status of each job template the names of the jobs that were created from it."""
