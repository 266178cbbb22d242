"""Compares the decisions of two versions of volcano_py: random clusters, ten cycles each, line by line."""
