"""Steady load for minutes: gangs arrive and end in balance while nodes are 95 % full and thousands of gangs wait.

load        what runs, waits and arrives, from a seed: the same for every scheduler
schedulers  a scheduler that a YAML file describes, as a process
kubelet     creates the objects, runs pods that are bound, and ends them
times       when each pod was created, got a reason, was bound and ended
apiserver   an embedded API server that notes these times itself
samples     what the times say: latencies, how full the nodes were
measure     one half: one scheduler on a new cluster
halves      all halves in the order A-B-B-A, and the rows
panels      the plot
"""
