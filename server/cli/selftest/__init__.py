"""Checks the responses of any server with an OpenAI-compatible API, this one or another.

A check is a function `check_*` that takes a Subject and raises WrongError for a wrong response.
The report prints the name of the function as the name of the check.
"""
