"""Scopes in the hashes of Redis or Valkey. ``docs/format.md`` describes the layout.

There are two separate ways to the server. *Data* (commits, hydration, the new claim after a lost connection) goes over
RESP connections on trio sockets (:mod:`~vfsd.store.redis.resp`), because redis-py has no trio client, and a change
of thread costs several times the round trip of a commit. *Administration* (URLs, credentials, TLS, preflight, claims,
leases, listings) goes through redis-py in worker threads (:mod:`~vfsd.store.redis.admin`).

``store`` fulfils the contract. ``claim`` commits over ``connection``, which fences; ``transaction`` encodes commits;
``load`` reads a scope.
"""
