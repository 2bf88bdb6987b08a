"""The Lua scripts that claim, release and destroy a scope. Each runs atomically in the server (Redis 7 or Valkey).

All have the flag ``allow-oom``: a claim must work on a full server, because otherwise nobody could mount the scope and
delete files. Ordinary commits are not scripts, because a transaction copies a large value once, and a script copies it
three times.
"""

from typing import Final

CLAIM: Final = b"""#!lua flags=allow-oom
-- KEYS scope, lease, scopes
-- ARGV owner, token, lease ms, expected epoch, create, take over, format, chunk size, now (ns), name
local present = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'dropping')
if not present[1] and ARGV[5] == '0' then return {'missing'} end
if present[3] then return {'dropping'} end
if present[1] and ARGV[4] ~= present[1] and ARGV[6] == '0' and redis.call('EXISTS', KEYS[2]) == 1 then
  return {'busy', present[1], present[2]}
end
-- The epochs of a new scope start at the current time (ms), not at 0. A scope of this name may have been destroyed
-- while its owner was frozen: that owner must not find its own epoch in the new scope.
if not present[1] then redis.call('HSET', KEYS[1], 'epoch', math.floor(ARGV[9] / 1000000)) end
local epoch = redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token', ARGV[2])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
redis.call('SADD', KEYS[3], ARGV[10])
if not present[1] then
  redis.call('HSET', KEYS[1], 'format', ARGV[7], 'chunk_size', ARGV[8], 'created', ARGV[9], 'next', 2, 'seq', 0)
end
return {'claimed', tostring(epoch), present[1] and '0' or '1'}
"""

SET_LIMITS: Final = b"""#!lua flags=allow-oom
-- KEYS scope   ARGV token, limits
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'limits', ARGV[2])
return 1
"""

RECLAIM: Final = b"""#!lua flags=allow-oom
-- KEYS scope, lease   ARGV token, lease ms
-- After a lost connection: take a new epoch, so that the server rejects what still arrives over the old connection.
local present = redis.call('HMGET', KEYS[1], 'token', 'owner', 'seq', 'next', 'epoch')
if not present[5] then return {'gone'} end
if present[1] ~= ARGV[1] then return {'fenced', present[2]} end
local epoch = redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {'claimed', tostring(epoch), present[3], present[4]}
"""

RENEW: Final = b"""#!lua flags=allow-oom
-- KEYS scope, lease   ARGV token, lease ms
local present = redis.call('HMGET', KEYS[1], 'token', 'owner', 'epoch')
if not present[3] then return {'gone'} end
if present[1] ~= ARGV[1] then return {'fenced', present[2]} end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {'renewed'}
"""

RELEASE: Final = b"""#!lua flags=allow-oom
-- KEYS scope, lease   ARGV token
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
redis.call('HDEL', KEYS[1], 'token', 'owner')
return 1
"""

UNDO: Final = b"""#!lua flags=allow-oom
-- KEYS scope, lease, scopes, inodes, entries, leftovers   ARGV token, name
-- Deletes a scope that the owner has created and never shown: it has no content yet.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[4], KEYS[5], KEYS[6])
redis.call('SREM', KEYS[3], ARGV[2])
return 1
"""

SHRINK: Final = b"""#!lua flags=allow-oom
-- KEYS scope, inodes, entries   ARGV epoch, number of inodes, number of entries, then commands: number of words, words
-- Stores a change that needs no memory. A full server refuses the same commands in a transaction.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch ~= ARGV[1] then return {'fenced', epoch} end
for k = 2, 3 do
  if redis.call('HLEN', KEYS[k]) ~= tonumber(ARGV[k]) then return {'changed'} end
end
local i = 4
while i <= #ARGV do
  local words = tonumber(ARGV[i])
  redis.call(unpack(ARGV, i + 1, i + words))
  i = i + words + 1
end
return {'stored'}
"""

START_DROP: Final = b"""#!lua flags=allow-oom
-- KEYS scope, lease   ARGV epoch of an owner known to be gone, or empty
-- Fences an owner that may still be alive, and marks the scope as being destroyed until its last key is deleted.
local present = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
if not present[1] then return {'missing'} end
if present[2] and present[1] ~= ARGV[1] and redis.call('EXISTS', KEYS[2]) == 1 then
  return {'busy', present[1], present[2]}
end
redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('HDEL', KEYS[1], 'token', 'owner')
redis.call('HSET', KEYS[1], 'dropping', 1)
redis.call('DEL', KEYS[2])
return {'dropping'}
"""

DROP_SLICE: Final = b"""#!lua flags=allow-oom
-- KEYS scope, data keys
-- Deletes the content of some files, if the scope is still being destroyed. Otherwise somebody else has finished that,
-- and the keys may belong to a new scope of this name.
if redis.call('HEXISTS', KEYS[1], 'dropping') == 0 then return 0 end
for i = 2, #KEYS do redis.call('UNLINK', KEYS[i]) end
return 1
"""

FINISH_DROP: Final = b"""#!lua flags=allow-oom
-- KEYS scope, scopes, inodes, entries, leftovers   ARGV name
-- Deletes the rest of a scope that is being destroyed, and its name in the list, in one step: a scope that is created
-- before this is refused, and one that is created after this gets its own name in the list.
if redis.call('HEXISTS', KEYS[1], 'dropping') == 0 then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[3], KEYS[4], KEYS[5])
redis.call('SREM', KEYS[2], ARGV[1])
return 1
"""
