"""The bench measures how fast vfsd is, and compares it with JuiceFS, a RAM disk and the floor of its stack.

``python -m bench --help`` lists the options. Nothing in vfsd imports this package, and it tests no correctness.
"""
