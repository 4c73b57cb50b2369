"""The parent of every plugin: a program of its own, which the host starts."""
