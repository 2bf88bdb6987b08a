"""Skills and other seeds: derived files that a mount shows among its own. They must never be stored by themselves.

A seed becomes a stored file only by what somebody does to it through the mount: ``translation`` says how.
"""
