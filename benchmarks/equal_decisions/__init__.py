"""A proof that two versions of volcano_py decide the same: random clusters, ten cycles each, compared line by line."""
