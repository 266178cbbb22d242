"""Programs for those who develop the project; an installation has none of them."""
