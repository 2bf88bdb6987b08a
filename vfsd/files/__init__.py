"""Whole files by path, for those who do not come through the kernel."""
