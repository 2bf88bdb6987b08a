"""Scopes in one SQLite file, no server needed.

``store`` is the contract, ``rows`` what a scope looks like in tables, ``database`` the file and its connections.
"""
