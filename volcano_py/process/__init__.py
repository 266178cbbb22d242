"""What every process of the system shares: start, lease, probes, drain, end.

A process builds a :class:`~volcano_py.process.context.ProcessContext`, hands its work to a
:class:`~volcano_py.process.lifecycle.Lifecycle`, and says in
:class:`~volcano_py.process.operator_pages.OperatorPages` what operators can ask it. Log, event loop, signals and exit
codes are those of :mod:`volcano_py.cli.process`.
"""
