"""The stores: they keep the scopes durable.

``base`` is the contract, ``url`` finds the store that a URL names, ``records`` writes inodes and entries as bytes,
``owner`` tells living owners from dead ones, ``group`` groups commits. ``memory``, ``redis`` and ``sqlite`` are the
stores. A store keeps changes durable and knows nothing of a tree, of FUSE or of seeds.
"""
