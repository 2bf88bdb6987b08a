"""Seeds: files that a mount shows and does not store, and what agent frameworks expect of skills beyond POSIX.

A seed is made from a file of the disk or from a string. It is stored only by what somebody does to it through the
mount (``translate`` says when). ``overlay`` and ``directory_mtime`` are hooks of the pipeline, the latter with
``distinct_times``; ``index`` records what is not stored; ``plan`` plans a seeding; ``sources`` and ``frontmatter`` read
skills; ``root_references`` answers lookups at the root that mean a file of a skill. Nothing here knows FUSE or a store.
"""
