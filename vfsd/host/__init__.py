"""Facts of this host: mountpoints, the mount table, and the registered mounts."""
