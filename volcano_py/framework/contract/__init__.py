"""What plugins are: the questions they answer, how answers combine, and what they are told."""
