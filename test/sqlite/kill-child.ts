// The process that is killed: appends, claims and settles as fast as it can, and logs each call, line by line, before it
// and after its reply. Arguments: file, seed, number of the cycle, known events to publish again.
import { writeSync } from 'node:fs'
import { createClaimRequest, done, partial, released, retry } from '../conformance/builders.ts'
import type {
  LeasedRun,
  EventToStore,
  Settlement,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import { Chance, eventOf, FLOW, LEASE, seedOf, sent, type Ended, type Line } from './kill-load.ts'

const [file = '', seed = '', cycle = '', ...known] = process.argv.slice(2)
const APPENDERS = 8
/** No wake-up ever comes. */
const BEHIND = new Int32Array(new SharedArrayBuffer(4))
const WORKERS = 2

const store = await openStore(`sqlite:${file}`)
const { routes } = await store.stats()
let calls = 0
let ids = 0

function tell(line: Line): void {
  // Blocks until the pipe has the line, so it is received even if the process dies at once.
  let left = Buffer.from(`${JSON.stringify(line)}\n`)
  while (left.length > 0) left = left.subarray(written(left))
}

/** The number of bytes written. A pipe whose reader is slow accepts nothing for a while. */
function written(bytes: Buffer): number {
  try {
    return writeSync(1, bytes)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
    Atomics.wait(BEHIND, 0, 0, 1)
    return 0
  }
}

function freshId(): string {
  return `c${cycle.padStart(5, '0')}n${(ids++).toString(36).padStart(5, '0')}`
}

// Appending

interface Item {
  readonly event: EventToStore
  /** The id of the known event that it repeats. */
  readonly of?: string
}

function itemsOf(chance: Chance): readonly Item[] {
  const items: Item[] = Array.from({ length: 1 + chance.below(16) }, () => ({ event: eventOf(freshId(), Date.now()) }))
  const first = items[0]?.event
  if (first !== undefined && chance.happens(0.05)) items.push({ event: { ...first, id: freshId() }, of: first.id })
  if (chance.happens(0.2)) {
    const of = known[chance.below(known.length)]
    if (of === undefined) return items
    const again = eventOf(of, Date.now())
    items.push({ event: chance.happens(0.5) ? again : { ...again, id: freshId() }, of })
  }
  return items
}

async function appendForEver(chance: Chance): Promise<never> {
  for (;;) {
    const items = itemsOf(chance)
    const fresh = items.filter((item) => item.of === undefined)
    const n = calls++
    tell({ kind: 'appending', n, events: fresh.map((item) => sent(item.event)) })
    const { results } = await store.append({ routes, events: items.map((item) => item.event) })
    const answers = items.flatMap((item, at) => (item.of === undefined ? [results[at]?.kind ?? ''] : []))
    tell({ kind: 'appended', n, answers })
    for (const [at, { event, of }] of items.entries()) {
      if (of !== undefined) tell({ kind: 'sent-again', of, as: event.id, answer: results[at]?.kind ?? '' })
    }
    const [first] = fresh
    if (first !== undefined && chance.happens(0.1)) known.push(first.event.id)
  }
}

// Settling

const END = { whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
const NOTHING = { retry: [], dead: [], publish: [] }

/** The random ending of a run; one in thirty is forgotten, and its lease lapses. */
function endOf(lease: LeasedRun, chance: Chance): readonly (readonly [Settlement, Ended])[] {
  const { runId: run, lane, token } = lease
  const events = lease.events.map((event) => event.id)
  const base = { ...END, lane, token }
  const ended = { run, lane, events, ...NOTHING }
  const attempt = { at: Date.now(), ms: 1, error: 'refused' }
  const kind = chance.next()
  if (kind < 0.033) return []
  if (kind < 0.13)
    return [
      [
        { ...base, outcome: retry(chance.below(20)), attempt },
        { ...ended, kind: 'retry' },
      ],
    ]
  if (kind < 0.15)
    return [
      [
        { ...base, outcome: released },
        { ...ended, kind: 'released' },
      ],
    ]
  if (kind < 0.18) {
    return [
      [
        { ...base, outcome: { kind: 'dead', reason: 'broken', block: false } },
        { ...ended, kind: 'dead' },
      ],
    ]
  }
  if (kind < 0.3 && events.length > 1) {
    const tried = events.filter((_, at) => at % 3 === 0)
    const died = chance.happens(0.3) ? events.filter((_, at) => at % 3 === 1) : []
    const outcome = partial({ retry: tried, dead: died })
    return [
      [
        { ...base, outcome, attempt },
        { ...ended, kind: 'partial', retry: tried, dead: died },
      ],
    ]
  }
  const publish = kind > 0.9 ? [eventOf(freshId(), Date.now())] : []
  return [
    [
      { ...base, outcome: done, publish },
      { ...ended, kind: 'done', publish: publish.map(sent) },
    ],
  ]
}

async function workForEver(name: string, chance: Chance): Promise<never> {
  const claim = [
    createClaimRequest({ flow: FLOW, maxRuns: 40, maxFailing: 10, maxSuspects: 5, maxEvents: 40, lease: LEASE }),
  ]
  let leases: readonly LeasedRun[] = []
  for (let request = 1; ; request++) {
    const ends = leases.flatMap((lease) => endOf(lease, chance))
    const n = calls++
    tell({ kind: 'settling', n, ends: ends.map(([, ended]) => ended) })
    const settle = ends.map(([settlement]) => settlement)
    const call: SettleAndClaimCall = { process: name, request, routes, settle, claim, budget: 1_000_000 }
    const reply = await store.settleAndClaim(call)
    tell({ kind: 'settled', n, answers: reply.settled })
    tellClaimed(reply)
    if (chance.happens(0.03)) await repeat(call, reply)
    leases = reply.claimed
  }
}

function tellClaimed({ claimed, crashed }: SettleAndClaimReply): void {
  const runs = claimed.map(({ runId: run, lane, token, tries, lapses, events }) => {
    return { run, lane, token, tries, lapses, events: events.map((event) => event.id) }
  })
  tell({ kind: 'claimed', runs, crashed: crashed.map(({ run }) => run) })
}

/** As after a lost reply: the same number returns the same reply. */
async function repeat(call: SettleAndClaimCall, first: SettleAndClaimReply): Promise<void> {
  const second = await store.settleAndClaim(call)
  const tokens = new Set(first.claimed.map((lease) => lease.token))
  const same = second.settled.join() === first.settled.join() && second.claimed.every(({ token }) => tokens.has(token))
  if (!same) tell({ kind: 'wrong', what: `turn ${call.request} of ${call.process} answered something else` })
}

// One life that exits normally fills the compile cache.
if (cycle === 'warm') {
  await store.close()
} else {
  const chanceOf = (name: string): Chance => new Chance(seedOf(`${seed} ${cycle} ${name}`))
  const appenders = Array.from({ length: APPENDERS }, (_, at) => appendForEver(chanceOf(`appender ${at}`)))
  const workers = Array.from({ length: WORKERS }, (_, at) => workForEver(`p${cycle}-${at}`, chanceOf(`worker ${at}`)))
  await Promise.all([...appenders, ...workers])
}
