"""The pure rules of a POSIX tree: what may change, and how. No I/O, no await, no clock.

``change`` is the vocabulary, ``inode`` what memory holds, ``tree`` applies changes, ``names``, ``attributes``
and ``data`` plan them. Nothing here may import trio, redis or pyfuse3, or any other part of the project than
:mod:`vfsd.errors` and :mod:`vfsd.clock`.
"""
