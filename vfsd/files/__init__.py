"""Files of a mounted scope by path: what the control socket offers, without the kernel.

``resolve`` finds what a path leads to. ``read`` and ``write`` read and change files, ``seed`` seeds them. Nothing here
knows the control protocol or FUSE.
"""
