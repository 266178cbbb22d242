"""The cluster as columns: an incremental store, private snapshots of it, and the undo journal."""
