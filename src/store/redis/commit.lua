-- Commits a decision: checks that the rows and ranges that it read are as they were, then writes all its changes or none. No
-- payload is decoded here.
-- KEYS[1]: the hash with the counter. The others: the hash (rows) and the sorted set (index, ordered by text) of each table used.
-- ARGV[1]: a flat list as MessagePack, in which a key is named by its number in KEYS.
--   1. the value that the counter must have, '' for any, and how many numbers to draw (see load.lua).
--   2. the number of row checks. Each: hash, n, then n times field and version, '' if the row must not exist. The first 10 bytes of a
--      row are its version, which each write changes.
--   3. the number of range checks. Each: set, start, stop, limit, and the SHA-1 of the members in order.
--   4. the number of writes. Each: command, key, n, then n arguments.
-- Returns {the time in ms, the end of the drawn numbers, the conflicts}. A conflict is the number of a check, counted from 1, or 0
-- for the counter. After a conflict nothing was written.
local at, args = 0, cmsgpack.unpack(ARGV[1])
local function take() at = at + 1 return args[at] end
local function key() return KEYS[tonumber(take())] end

local time, conflicts, number = redis.call('TIME'), {}, 0
local counter, expected, count = redis.call('HGET', KEYS[1], 'counter') or '0', take(), tonumber(take())
if expected ~= '' and expected ~= counter then conflicts[1] = 0 end
local last = math.max(counter, time[1] * 1000000 + time[2]) + count
for _ = 1, tonumber(take()) do
  local hash, n = key(), tonumber(take())
  for first = 1, n, 1000 do
    local fields, versions = {}, {}
    for one = 1, math.min(1000, n - first + 1) do fields[one], versions[one] = take(), take() end
    local rows = redis.call('HMGET', hash, unpack(fields))
    for one = 1, #fields do
      number = number + 1
      if (rows[one] and string.sub(rows[one], 1, 10) or '') ~= versions[one] then conflicts[#conflicts + 1] = number end
    end
  end
end
for _ = 1, tonumber(take()) do
  local members = redis.call('ZRANGE', key(), take(), take(), 'BYLEX', 'LIMIT', 0, take())
  number = number + 1
  if redis.sha1hex(table.concat(members, '\n')) ~= take() then conflicts[#conflicts + 1] = number end
end
if #conflicts == 0 then
  for _ = 1, tonumber(take()) do
    local command, name, n = take(), key(), tonumber(take())
    at = at + n
    redis.call(command, name, unpack(args, at - n + 1, at))
  end
  if count > 0 then redis.call('HSET', KEYS[1], 'counter', string.format('%.0f', last)) end
end
return {string.format('%.0f', math.floor(time[1] * 1000 + time[2] / 1000)), string.format('%.0f', last), conflicts}
