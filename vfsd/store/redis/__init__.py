"""Scopes in Redis or Valkey hashes. ``store`` is the contract, ``docs/format.md`` the layout.

Two ways to the server, kept apart. *Data*: commits, hydration and the re-claim after a lost connection go over
one small RESP connection on a trio socket (``link``), because redis-py has no trio client and a thread hop costs
several times the round trip of a commit. *Administration*: URLs, credentials, TLS, preflight, claims, leases and
listings are redis-py's, in worker threads (``server``).
"""
