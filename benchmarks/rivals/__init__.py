"""What rivals need besides their packages. Run by their own interpreters; imports none of us."""
