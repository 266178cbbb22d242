"""All metrics of the processes: Volcano's under Volcano's names, ours under ``volcano_py_``.

Every class takes the registry it registers in, so that several schedulers in one process do not share numbers.
Children of labelled metrics are looked up once and kept: a look-up costs more than the increment.
"""
