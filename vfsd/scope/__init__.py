"""One mounted scope: its tree in memory, its store, and every change that is made to it.

``volume`` is the façade: every change goes through it. ``hydrate`` loads the tree. ``pipeline`` makes changes, one way
for all, with ``inode_locks``, ``stamps`` and ``quota`` (and its ``memory_limit``). ``hooks`` is the interface of what
takes part in a change; ``deferred`` is one of the hooks. ``background`` runs what outlives a request.
``resident_memory`` measures what the process takes beside the tree.
"""
