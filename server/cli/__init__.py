"""The command line: the parser, the commands, and what only they use."""
