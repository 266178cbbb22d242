"""Asking plugins: combined answers, orders, static filters, and the texts that say why a job waits."""
