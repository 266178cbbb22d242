"""Areas below controllers/."""
