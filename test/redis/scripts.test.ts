// The scripts of the store do what their headers say, and the cases that show it detect planted bugs.
import { readFileSync } from 'node:fs'
import { expect, inject, onTestFinished, test } from 'vitest'
import { connectRedis, type RedisConnection } from '../../src/store/redis/client.ts'
import { findFailures, type ScriptTexts } from './script-cases.ts'

const read = (name: string): string =>
  readFileSync(new URL(`../../src/store/redis/${name}.lua`, import.meta.url), 'utf8')
const TEXTS: ScriptTexts = { commit: read('commit'), load: read('load') }
const MAX_LINES = 80

async function connect(): Promise<RedisConnection> {
  const connection = await connectRedis(inject('redisUrl'))
  onTestFinished(() => connection.close())
  return connection
}

test('the scripts hold in every case, and are short', async () => {
  expect(await findFailures(await connect(), TEXTS)).toEqual([])
  for (const text of Object.values(TEXTS)) expect(text.split('\n').length).toBeLessThanOrEqual(MAX_LINES)
})

interface Planted {
  readonly bug: string
  readonly script: keyof ScriptTexts
  readonly find: string
  readonly replace: string
}

const PLANTED: readonly Planted[] = [
  { bug: 'versions are not compared', script: 'commit', find: '~= versions[one]', replace: '== false' },
  {
    bug: 'a missing row passes',
    script: 'commit',
    find: "or '') ~= versions[one]",
    replace: 'or versions[one]) ~= versions[one]',
  },
  {
    bug: 'a row that should not exist passes',
    script: 'commit',
    find: '~= versions[one] then',
    replace: "~= versions[one] and versions[one] ~= '' then",
  },
  { bug: 'ranges are not compared', script: 'commit', find: '~= take() then', replace: '~= take() and false then' },
  {
    bug: 'the limit of a range is ignored',
    script: 'commit',
    find: "'LIMIT', 0, take())",
    replace: "'LIMIT', 0, take() and -1)",
  },
  { bug: 'the counter is not compared', script: 'commit', find: "expected ~= '' and", replace: 'false and' },
  {
    bug: 'it writes in spite of conflicts',
    script: 'commit',
    find: 'if #conflicts == 0 then',
    replace: 'if true then',
  },
  {
    bug: 'checks behind the first thousand are left out',
    script: 'commit',
    find: 'for first = 1, n, 1000 do',
    replace: 'for first = 1, math.min(n, 1000), 1000 do',
  },
  {
    bug: 'the drawn numbers are not stored',
    script: 'commit',
    find: 'if count > 0 then redis',
    replace: 'if count > 1e9 then redis',
  },
  { bug: 'numbers follow the time only', script: 'commit', find: 'math.max(counter,', replace: 'math.max(0,' },
  {
    bug: 'numbers of a load follow the time only',
    script: 'load',
    find: "redis.call('HGET', KEYS[1], 'counter') or 0",
    replace: '0',
  },
  {
    bug: 'rows behind the first thousand are left out',
    script: 'load',
    find: 'rows[first + n - 1]',
    replace: 'rows[n]',
  },
  {
    bug: 'the key of a row ends at the last NUL',
    script: 'load',
    find: "string.find(members[n], '\\0', 1, true) + 1",
    replace: "#members[n] - string.find(string.reverse(members[n]), '\\0', 1, true) + 2",
  },
  { bug: 'the groups have no bound', script: 'load', find: '#found < 2 * limit', replace: 'true' },
  { bug: 'a group is counted with the next', script: 'load', find: "'(' .. name .. '\\2')", replace: "'+')" },
  { bug: 'events are loaded without a bound', script: 'load', find: 'if left >= 0 then', replace: 'if true then' },
]

test.each(PLANTED)('planted in $script: $bug', async ({ script, find, replace }) => {
  expect(TEXTS[script].split(find).length).toBe(2)
  const planted = { ...TEXTS, [script]: TEXTS[script].replace(find, () => replace) }
  expect(await findFailures(await connect(), planted)).not.toEqual([])
})
