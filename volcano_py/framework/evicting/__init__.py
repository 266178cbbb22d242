"""Room by eviction: who may go, in what order, and a plan that is proved before anybody goes."""
