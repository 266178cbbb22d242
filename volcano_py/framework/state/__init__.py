"""The state of a session, which knows no plugin: handles on columns, the statement, memory, and running counts."""
