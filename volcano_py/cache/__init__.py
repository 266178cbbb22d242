"""What the API server says, as records and columns: conversions, the cluster's state, assumed binds, change notices."""
