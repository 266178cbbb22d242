"""Creates the required queues, and keeps the state of each queue and its number of PodGroups up to date."""
