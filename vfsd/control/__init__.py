"""The control socket of a mount, which commands and clients talk to. ``protocol`` has the format of its lines."""
