"""HTTP: the app, its settings, routes, streams of events and audio, the error table, the commands.

Everything that comes in is checked here before anything starts; everything that goes out is framed
here. Knows requests, models by name and outputs; not how stages run or what they compute.
"""

VERSION = "0.1.0"
