"""A simulator of the job controller: the real controller on a fake API server, with faults, all from one seed."""
