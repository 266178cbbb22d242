"""Plugins of jobs: what ``spec.plugins`` of a job adds to its pods, and the objects that its pods need besides."""
