"""The rules of a POSIX tree: what may change, and how. Pure: no I/O, no await, no clock.

``change`` defines the operations of which every change consists. ``inode`` and ``tree`` are what memory holds; only
``Tree`` applies changes. ``plan_names``, ``plan_attributes``, ``plan_content`` and ``plan_subtree`` plan changes with a
``draft``. ``chunks`` does the arithmetic of file content, and ``limits`` checks a change against the limits of a scope.

Modules here import only ``errors`` from the rest of vfsd, and never trio, redis or pyfuse3 (see
``tests/test_architecture.py``).
"""
