"""The command line: the parser, the commands, and code that only they use."""
