"""The life of one mount, and the process that lives it."""
