"""Checks of what a server sends, from outside: any server that has OpenAI's wire, ours or another.

A check is a function `check_*` of a Subject; it raises what is wrong. Its name is its line in the
table.
"""
