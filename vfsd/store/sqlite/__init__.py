"""Scopes in one SQLite file, without a server.

``store`` fulfils the contract, and ``claim`` commits. ``database`` is the file and its connections. ``scope_rows`` has
one row per scope, and ``rows`` has the tables of its inodes, entries and chunks. ``leftovers`` deletes large content
later. ``files`` notices that somebody else touched the files.
"""
