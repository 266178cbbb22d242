"""Answers as tables: the server builds what `kubectl get` prints from the columns of each kind."""
