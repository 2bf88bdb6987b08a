"""How fast vfsd is, and where the time goes: measured against the floor of its stack, a RAM disk, and JuiceFS.

``python -m bench --help``. Nothing in vfsd imports this package, and it takes part in no test of correctness.
"""
