"""FUSE: from a request of the kernel to the volume, and back as a reply. The only package that imports pyfuse3.

``session`` mounts and serves. ``operations`` answers requests, ``replies`` builds the attributes for the kernel, and
``handles`` keeps what is open. ``guard`` turns every exception into an errno. Layers around the handlers answer lookups
at the root (``root_references``, with ``caller``) and log requests (``trace``). ``kernel_cache`` makes the kernel
forget. ``idle_poll`` waits for the next request. ``device`` says whether this process may mount at all, ``libfuse``
knows the mount options, and ``version`` names the libraries in use.

The rules of POSIX are in :mod:`vfsd.tree`, and what a name at the root means is decided in
:mod:`vfsd.seeds.root_references`. Here is only what depends on the kernel: what it may cache, which references it
counts, and which errno answers a request that the volume never sees.
"""
