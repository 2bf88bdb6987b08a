"""FUSE: from a kernel request to the volume, and back as a reply. The only package that imports pyfuse3.

``operations`` answers requests, ``view`` makes the kernel's attributes, ``handles`` keeps what is open, ``guard``
lets no exception past, ``session`` mounts and serves. No rule of the file system lives here.
"""
