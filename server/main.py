"""Where the installed command starts. Imports nothing before it runs.

A worker's process imports the server's main module once more; it must not bring the server along.
"""


def main() -> int:
    """Run the command line; the exit status."""
    from server.cli import main as run

    return run()
