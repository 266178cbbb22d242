"""What a session knows, without a plugin: handles on columns, the statement, memory, what is counted meanwhile."""
