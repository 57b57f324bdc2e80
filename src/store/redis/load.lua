-- Reads what a decision needs, at one moment. No payload is decoded here.
-- KEYS[1]: the hash with the counter. The others: the hash (rows) and the sorted set (index, ordered by text) of each table read.
-- ARGV[1]: a flat list as MessagePack, in which a key is named by its number in KEYS.
--   1. how many numbers to draw from the counter, or 0. Drawn numbers are above the time in microseconds, so they do not repeat
--      even if a failover loses the counter's last value.
--   2. the number of reads, and the reads: a name of `reads` and the arguments that it takes.
-- Returns {the time in ms, the end of the drawn numbers, the replies of the reads}.
local at, args = 0, cmsgpack.unpack(ARGV[1])
local function take() at = at + 1 return args[at] end
local function key() return KEYS[tonumber(take())] end
local function range(set, start, stop, direction, limit)
  if direction == 'REV' then return redis.call('ZRANGE', set, start, stop, 'BYLEX', 'REV', 'LIMIT', 0, limit) end
  return redis.call('ZRANGE', set, start, stop, 'BYLEX', 'LIMIT', 0, limit)
end
local function rowsOf(hash, fields)
  local rows = {}
  for first = 1, #fields, 1000 do
    local part = redis.call('HMGET', hash, unpack(fields, first, math.min(first + 999, #fields)))
    for n = 1, #part do rows[first + n - 1] = part[n] end
  end
  return rows
end

local reads = {}
-- Rows by their keys: hash, n, fields.
function reads.rows()
  local hash, fields = key(), {}
  for n = 1, tonumber(take()) do fields[n] = take() end
  return rowsOf(hash, fields)
end
-- The number of members in a range: set, start, stop.
function reads.count() return redis.call('ZLEXCOUNT', key(), take(), take()) end
-- The members of a range, and their rows: set, hash, start, stop, 'REV' or '', limit. The key of a row follows the first NUL of
-- its member. If set and hash are the same key, the members have no rows.
function reads.range()
  local set, hash, fields = key(), key(), {}
  local members = range(set, take(), take(), take(), take())
  if set == hash then return {members} end
  for n = 1, #members do fields[n] = string.sub(members[n], string.find(members[n], '\0', 1, true) + 1) end
  return {members, rowsOf(hash, fields)}
end
-- The first member and the size of each group: set, start, stop, limit. The name of a group ends with the first byte 1.
function reads.groups()
  local set, start, stop, limit, found = key(), take(), take(), tonumber(take()), {}
  while #found < 2 * limit do
    local first = redis.call('ZRANGE', set, start, stop, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not first then break end
    local name = string.sub(first, 1, string.find(first, '\1', 1, true) - 1)
    start = '[' .. name .. '\2'
    found[#found + 1] = first
    found[#found + 1] = redis.call('ZLEXCOUNT', set, '[' .. name, '(' .. name .. '\2')
  end
  return found
end
-- The first placements of lanes, and the rows and bodies of their events: set, hash, hash, how many of a lane, how many bytes in
-- all, n, prefixes.
function reads.placed()
  local set, rows, bodies, limit, left = key(), key(), key(), take(), tonumber(take())
  local lanes, events = {}, {}
  for n = 1, tonumber(take()) do
    local prefix = take()
    lanes[n] = range(set, '[' .. prefix, '(' .. prefix .. '\127', '', limit)
    for _, member in ipairs(lanes[n]) do
      local event, size = string.match(member, '%z(%d+):(%d+)')
      left = left - size
      if left >= 0 then events[#events + 1] = event end
    end
  end
  return {lanes, events, rowsOf(rows, events), rowsOf(bodies, events)}
end

local time, count, last, replies = redis.call('TIME'), tonumber(take()), 0, {}
if count > 0 then last = math.max(redis.call('HGET', KEYS[1], 'counter') or 0, time[1] * 1000000 + time[2]) + count end
if count > 0 then redis.call('HSET', KEYS[1], 'counter', string.format('%.0f', last)) end
for n = 1, tonumber(take()) do replies[n] = reads[take()]() end
return {string.format('%.0f', math.floor(time[1] * 1000 + time[2] / 1000)), string.format('%.0f', last), replies}
