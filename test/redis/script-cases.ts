// What commit.lua and load.lua must do, as cases that run on any text of them: on the real scripts, where each must hold, and on scripts
// with a planted bug, where one must not.
import { deepEqual } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { RedisConnection, RedisReply } from '../../src/store/redis/client.ts'
import { pack } from '../../src/store/redis/pack.ts'
import { CommitRequest, LoadRequest } from '../../src/store/redis/script-requests.ts'

export interface ScriptTexts {
  readonly commit: string
  readonly load: string
}

type Case = (t: ScriptTest) => Promise<void>

const OLD = 'v000000001'
const NEW = 'v000000002'
const AHEAD = 8e15

class ScriptTest {
  readonly connection: RedisConnection
  readonly #texts: ScriptTexts
  readonly #prefix = randomUUID()
  readonly conflicts: string[] = []

  constructor(connection: RedisConnection, texts: ScriptTexts) {
    this.connection = connection
    this.#texts = texts
  }

  key(name: string): string {
    return `${this.#prefix}:${name}`
  }

  commit(): CommitRequest {
    return new CommitRequest(this.key('meta'), NEW, true)
  }

  load(): LoadRequest {
    return new LoadRequest(this.key('meta'))
  }

  check(commit: CommitRequest, field: string, version: string): void {
    commit.checkRow(this.key('rows'), field, { version, onConflict: () => this.conflicts.push(field) })
  }

  async #run(text: string, { keys, arguments: args }: CommitRequest | LoadRequest): Promise<readonly RedisReply[]> {
    const sent = ['EVAL', `#!lua\n${text}`, String(keys.length), ...keys, pack(args)]
    return (await this.connection.send(sent)) as readonly RedisReply[]
  }

  /** Returns the last drawn number. */
  async runCommit(commit: CommitRequest): Promise<number> {
    const [, last, conflicts] = await this.#run(this.#texts.commit, commit)
    commit.reportConflicts(conflicts as readonly number[])
    if ((conflicts as readonly number[]).includes(0)) this.conflicts.push('counter')
    return Number(last)
  }

  async runLoad(load: LoadRequest): Promise<number> {
    const [, last, replies] = await this.#run(this.#texts.load, load)
    load.receive(replies as readonly RedisReply[])
    return Number(last)
  }

  async put(field: string, row: string): Promise<void> {
    await this.connection.send(['HSET', this.key('rows'), field, row])
  }

  async add(...members: readonly string[]): Promise<void> {
    await this.connection.send(['ZADD', this.key('index'), ...members.flatMap((member) => ['0', member])])
  }

  async read(field: string): Promise<string> {
    return String(await this.connection.send(['HGET', this.key('rows'), field]))
  }

  async forget(): Promise<void> {
    await this.connection.send(['DEL', ...['meta', 'rows', 'index', 'bodies'].map((name) => this.key(name))])
  }
}

/** Commits a write of `written` behind a check of row `a`. */
async function commitBehind(t: ScriptTest, version: string): Promise<void> {
  const commit = t.commit()
  t.check(commit, 'a', version)
  commit.write('HSET', t.key('rows'), 'written', 'yes')
  await t.runCommit(commit)
}

async function expectNothing(t: ScriptTest, conflicts: readonly string[]): Promise<void> {
  deepEqual([t.conflicts, await t.read('written')], [conflicts, 'null'])
}

const CASES: Readonly<Record<string, Case>> = {
  'a commit whose row is as it was writes': async (t) => {
    await t.put('a', `${OLD}rest`)
    await commitBehind(t, OLD)
    deepEqual([t.conflicts, await t.read('written')], [[], 'yes'])
  },
  'a commit whose row was changed writes nothing': async (t) => {
    await t.put('a', `${NEW}rest`)
    await commitBehind(t, OLD)
    await expectNothing(t, ['a'])
  },
  'a commit whose row was removed writes nothing': async (t) => {
    await commitBehind(t, OLD)
    await expectNothing(t, ['a'])
  },
  'a commit whose row was added writes nothing': async (t) => {
    await t.put('a', `${OLD}rest`)
    await commitBehind(t, '')
    await expectNothing(t, ['a'])
  },
  'of thousands of checks the failed one is named': async (t) => {
    await t.put('1499', `${OLD}rest`)
    const commit = t.commit()
    for (let n = 0; n < 2_500; n++) t.check(commit, String(n), '')
    commit.write('HSET', t.key('rows'), 'written', 'yes')
    await t.runCommit(commit)
    await expectNothing(t, ['1499'])
  },
  'a commit whose range was changed writes nothing, behind the end of the range it writes': async (t) => {
    await t.add('a1', 'a2', 'a3', 'b1')
    for (const [members, n] of [
      [['a1', 'a2'], 2],
      [['a1', 'a2', 'a3'], Infinity],
    ] as const) {
      const commit = t.commit()
      const range = { from: 'a', to: 'b', n }
      commit.checkRange(t.key('index'), range, { members, onConflict: () => t.conflicts.push('range') })
      commit.write('HSET', t.key('rows'), `of ${n}`, 'yes')
      await t.runCommit(commit)
      deepEqual([t.conflicts, await t.read(`of ${n}`)], [[], 'yes'])
    }
    const commit = t.commit()
    const range = { from: 'a', to: 'b', n: Infinity }
    commit.checkRange(t.key('index'), range, { members: ['a1', 'a2'], onConflict: () => t.conflicts.push('range') })
    commit.write('HSET', t.key('rows'), 'written', 'yes')
    await t.runCommit(commit)
    await expectNothing(t, ['range'])
  },
  'a commit after the draw of another process writes nothing': async (t) => {
    const first = t.commit()
    first.draws = 5
    const last = await t.runCommit(first)
    for (const counter of [String(last), String(last)]) {
      const commit = t.commit()
      commit.counter = counter
      commit.draws = 5
      commit.write('HSET', t.key('rows'), 'written', 'yes')
      await t.runCommit(commit)
      if (counter !== String(last) || t.conflicts.length > 0) break
      deepEqual(await t.read('written'), 'yes')
      await t.connection.send(['HDEL', t.key('rows'), 'written'])
    }
    await expectNothing(t, ['counter'])
  },
  'drawn numbers grow, even if the counter is ahead of the time': async (t) => {
    await t.connection.send(['HSET', t.key('meta'), 'counter', String(AHEAD)])
    const commit = t.commit()
    commit.draws = 5
    const load = t.load()
    load.draws = 3
    deepEqual([await t.runCommit(commit), await t.runLoad(load)], [AHEAD + 5, AHEAD + 8])
    deepEqual(String(await t.connection.send(['HGET', t.key('meta'), 'counter'])), String(AHEAD + 8))
  },
  'all writes of a commit happen': async (t) => {
    await t.add('gone')
    const commit = t.commit()
    for (let n = 0; n < 3_000; n++) commit.write('HSET', t.key('rows'), String(n), String(n))
    commit.write('ZADD', t.key('index'), '0', 'added')
    commit.write('ZREM', t.key('index'), 'gone')
    await t.runCommit(commit)
    deepEqual(await t.connection.send(['HLEN', t.key('rows')]), 3_000)
    deepEqual(String(await t.connection.send(['ZRANGE', t.key('index'), '0', '-1'])), 'added')
  },
  'a load returns rows by key, and nothing for missing ones': async (t) => {
    for (let n = 0; n < 2_500; n += 2) await t.put(String(n), `row ${n}`)
    const load = t.load()
    let found: readonly (Buffer | null)[] = []
    load.readRows(
      t.key('rows'),
      Array.from({ length: 2_500 }, (_, n) => String(n)),
      (rows) => (found = rows),
    )
    await t.runLoad(load)
    deepEqual(
      found.map((row) => row && String(row)),
      Array.from({ length: 2_500 }, (_, n) => (n % 2 === 0 ? `row ${n}` : null)),
    )
  },
  'a load returns ranges in both directions, with rows': async (t) => {
    await t.add('a1\0x', 'a2\0y\0z', 'a3\0none', 'b1\0x')
    await t.put('x', 'row x')
    await t.put('y\0z', 'row y')
    const load = t.load()
    const found: unknown[] = []
    const read = (
      range: { from: string; to: string; isReversed?: boolean; n: number },
      hash: string | undefined,
    ): void =>
      load.readRange(t.key('index'), hash, range, ({ members, rows }) =>
        found.push([members, rows.map((row) => row && String(row))]),
      )
    read({ from: 'a', to: 'b', n: Infinity }, t.key('rows'))
    read({ from: 'a2', to: 'b2', isReversed: true, n: 2 }, t.key('rows'))
    read({ from: 'a', to: 'b', n: 1 }, undefined)
    await t.runLoad(load)
    deepEqual(found, [
      [
        ['a1\0x', 'a2\0y\0z', 'a3\0none'],
        ['row x', 'row y', null],
      ],
      [
        ['b1\0x', 'a3\0none'],
        ['row x', null],
      ],
      [['a1\0x'], []],
    ])
  },
  'a load returns groups and counts': async (t) => {
    await t.add('g"a"\u00011\0x', 'g"a"\u00012\0y', 'g"b"\u00015\0z', 'g"c"\u00011\0x', 'h')
    const load = t.load()
    const found: unknown[] = []
    load.readGroups(t.key('index'), { from: 'g', to: 'h', n: 10 }, (groups) => found.push(...groups))
    load.readGroups(t.key('index'), { from: 'g', to: 'h', n: 1 }, (groups) => found.push(...groups))
    load.count(t.key('index'), { from: 'g"a"', to: 'g"c"' }, (count) => found.push(count))
    await t.runLoad(load)
    const a = { first: 'g"a"\u00011\0x', count: 2 }
    deepEqual(found, [a, { first: 'g"b"\u00015\0z', count: 1 }, { first: 'g"c"\u00011\0x', count: 1 }, a, 3])
  },
  'a load returns the first placements of lanes, with events up to a number of bytes': async (t) => {
    await t.add('k0001\x007:10:0:', 'k0002\x008:10:0:', 'k0003\x009:10:0:', 'l0001\x009:10:0:', 'm0001\x007:10:0:')
    await t.put('7', 'head 7')
    await t.put('8', 'head 8')
    await t.put('9', 'head 9')
    await t.connection.send(['HSET', t.key('bodies'), '7', 'body 7', '8', 'body 8', '9', 'body 9'])
    const load = t.load()
    let found: unknown
    const from = { set: t.key('index'), rows: t.key('rows'), bodies: t.key('bodies'), perLane: 2, bytes: 25 }
    load.readPlaced(from, ['k', 'l'], (reply) => (found = toText(reply)))
    await t.runLoad(load)
    const lanes = [['k0001\x007:10:0:', 'k0002\x008:10:0:'], ['l0001\x009:10:0:']]
    deepEqual(found, [lanes, ['7', '8'], ['head 7', 'head 8'], ['body 7', 'body 8']])
  },
}

function toText(reply: RedisReply): unknown {
  return Array.isArray(reply) ? reply.map(toText) : reply === null ? null : String(reply)
}

/** `findFailures` returns the names of the cases that do not hold. */
export async function findFailures(connection: RedisConnection, texts: ScriptTexts): Promise<readonly string[]> {
  const failed: string[] = []
  for (const [name, run] of Object.entries(CASES)) {
    const t = new ScriptTest(connection, texts)
    try {
      await run(t)
    } catch {
      failed.push(name)
    } finally {
      await t.forget()
    }
  }
  return failed
}
