"""What agent frameworks expect of directories that hold skills, beyond POSIX. It knows neither FUSE nor Redis."""
