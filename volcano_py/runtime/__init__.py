"""What every process shares: clock, options, logging, signals, supervised tasks, health and metrics over HTTP."""
