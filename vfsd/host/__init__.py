"""Facts of this machine: mountpoints and registered mounts."""
