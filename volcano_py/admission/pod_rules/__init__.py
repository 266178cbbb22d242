"""What is wrong with a pod template: the rules by which the API server judges pods, and its sentences.

The API server does not judge the templates inside of Volcano's kinds, so a job with a bad one would never get a pod.
"""
