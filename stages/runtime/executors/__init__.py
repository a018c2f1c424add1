"""Where a stage worker runs: a thread of this process, a process of its own, another machine."""
