"""The simulation of commit 6cdffff, before fifteen defects were mended that had been found by reading.

    python -m tests.simulation.old_commit                scan seeds, and say which seed shows which defect
    python -m tests.simulation.old_commit --verify       run only the noted plans: does each still show its defect?

The tree of that commit is made in a temporary folder. It gets only `injection.patch` (time, random numbers and
identities, as they are injected today), and `programs.py`, which knows how its programs are built. Its plans have gangs
and single pods, because it has no jobs. Whether a violation is one of the defects is told by its mend: with
`mends/NN.patch`, which mends defect NN and nothing else, the seed does not violate the invariant.
"""
