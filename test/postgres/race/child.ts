// One process of a race: two writers and a worker, each with its own store. It reports what it did at the end.
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { createClaimRequest, dead, done, createRetentionPolicy, retry, snoozed } from '../../conformance/builders.ts'
import type {
  LeasedRun,
  Settlement,
  Store,
  SettleAndClaimCall,
  SettleAndClaimReply,
} from '../../../src/store/contract/index.ts'
import { now } from '../../engine-kill/load.ts'
import { openInMode } from '../direct-calls.ts'
import { Chance, seedOf } from '../../sqlite/kill-load.ts'
import {
  batchOf,
  eventOf,
  isPublished,
  WRITERS_EACH,
  type Held,
  type RaceCall,
  type Worked,
  type Written,
} from './load.ts'

const call = JSON.parse(process.argv[2] ?? '{}') as RaceCall
const CONNECTIONS = 2
const SLOTS = 6
const EVENTS_AT_ONCE = 4
const REPEATED = 0.05
const HELD_BACK = 0.3
const DONE = 0.8
const LOOK_AGAIN_MS = 20
const ENDS = { done, retry: retry(0), snoozed: snoozed(0), dead }
/** After every this many calls, the process retries dead letters and runs maintenance. */
const MAINTENANCE_EVERY = 20
const LETTERS_AT_ONCE = 20
const STRANDED_AFTER_MS = 5_000

/** On PostgreSQL, the processes differ in who decides the calls that need no rules. */
function open(): Promise<Store> {
  return openInMode(call.address, { connections: CONNECTIONS, acceptLoss: true }, call.process)
}

async function write(writer: number): Promise<Written> {
  const store = await open()
  const { routes } = await store.stats()
  const answers: (readonly [string, string])[] = []
  for (let n = 0; n < call.batches; n++) {
    const labels = batchOf(call, writer, n)
    const { results } = await store.append({ routes, events: labels.map((label) => eventOf(label, Date.now())) })
    answers.push(...labels.map((label, at) => [label, results[at]?.kind ?? ''] as const))
  }
  await store.close()
  return { kind: 'written', answers }
}

interface Run extends Omit<Held, 'to' | 'end' | 'isDeadLetter' | 'published'> {
  readonly lease: LeasedRun
}

class Worker {
  readonly #store: Store
  readonly #chance = new Chance(seedOf(`${call.seed} worker ${call.process}`))
  readonly #held: Held[] = []
  readonly #wrong: string[] = []
  #running: Run[] = []
  #request = 0
  #repeated = 0
  #routes = 0
  #isLast = false

  constructor(store: Store) {
    this.#store = store
  }

  /** All writers have finished, so no more events come. */
  noMore(): void {
    this.#isLast = true
  }

  async work(): Promise<Worked> {
    this.#routes = (await this.#store.stats()).routes
    for (let idleSince = now(); now() - idleSince < STRANDED_AFTER_MS;) {
      if (await this.#turn()) idleSince = now()
      else if (await this.#retryDead()) idleSince = now()
      else if (this.#isLast && (await this.#isEmpty())) break
      else await this.#news()
    }
    await this.#store.close()
    return { kind: 'worked', held: this.#held, wrong: this.#wrong, repeated: this.#repeated }
  }

  /** The other processes may do the same at the same time. */
  async #retryDead(): Promise<boolean> {
    const { items } = await this.#store.find({ kind: 'dead', filter: {}, cursor: '', n: LETTERS_AT_ONCE })
    const ids = items.filter((deadLetter) => deadLetter.state === 'dead').map((deadLetter) => deadLetter.id)
    if (ids.length === 0) return false
    const { results } = await this.#store.steer({ what: 'dead', ids, act: 'retry' })
    return results.includes('ok')
  }

  async #maintain(): Promise<void> {
    await Promise.all([this.#retryDead(), this.#store.maintain({ budget: 1, policy: createRetentionPolicy() })])
  }

  async #isEmpty(): Promise<boolean> {
    return (await this.#store.find({ kind: 'lanes', filter: {}, cursor: '', n: 1 })).items.length === 0
  }

  /** No hint wakes the worker if another process held the last lane: it polls again by itself. */
  async #news(): Promise<void> {
    const heard = new AbortController()
    const deaf = this.#store.listen(() => heard.abort())
    await setTimeout(LOOK_AGAIN_MS, undefined, { signal: heard.signal }).catch(() => {})
    deaf()
  }

  /** Returns whether there was work. */
  async #turn(): Promise<boolean> {
    const ending = this.#running.filter(() => !this.#chance.happens(HELD_BACK))
    const settle = ending.map((run) => this.#end(run))
    const turn: SettleAndClaimCall = {
      process: `worker ${call.process}`,
      request: ++this.#request,
      routes: this.#routes,
      settle,
      claim: [createClaimRequest({ maxRuns: SLOTS - this.#running.length + ending.length, maxEvents: EVENTS_AT_ONCE })],
      budget: 1e6,
    }
    const beside = this.#request % MAINTENANCE_EVERY === 0 ? this.#maintain() : undefined
    const [{ settled, unstored: keptOut, claimed }] = await Promise.all([this.#asked(turn), beside])
    const from = now()
    for (const [at, answer] of settled.entries())
      if (answer !== 'ok') this.#wrong.push(`${ending[at]?.run} was ${answer}`)
    for (const { result } of keptOut) this.#wrong.push(`what was published was kept out: ${result.kind}`)
    this.#running = this.#running.filter((run) => !ending.includes(run))
    for (const lease of claimed) {
      const labels = lease.events.map((event) => event.subject)
      this.#running.push({ key: lease.key, run: lease.runId, from, labels, lease })
    }
    return claimed.length + settle.length + this.#running.length > 0
  }

  /** Now and then sends a call twice, as if the reply had been lost: both get the same reply. */
  async #asked(turn: SettleAndClaimCall): Promise<SettleAndClaimReply> {
    if (!this.#chance.happens(REPEATED)) return this.#store.settleAndClaim(turn)
    this.#repeated++
    const [reply, other] = await Promise.all([this.#store.settleAndClaim(turn), this.#store.settleAndClaim(turn)])
    if (said(reply) !== said(other)) this.#wrong.push(`a turn was answered ${said(reply)}, and again ${said(other)}`)
    return reply
  }

  #endOf(): Held['end'] {
    if (this.#chance.happens(DONE)) return 'done'
    if (this.#chance.happens(0.2)) return 'dead'
    return this.#chance.happens(0.5) ? 'retry' : 'snoozed'
  }

  #end({ lease, key, run, from, labels }: Run): Settlement {
    const end = this.#endOf()
    const outcome = ENDS[end]
    const publishes = end === 'done' && !labels.every(isPublished) && this.#chance.happens(0.5)
    const published = publishes ? [`p${run}/0`, `p${run}/1`] : []
    const publish = published.map((label) => eventOf(label, Date.now()))
    this.#held.push({ key, run, from, to: now(), labels, end, isDeadLetter: lease.isDeadLetter, published })
    return {
      lane: lease.lane,
      token: lease.token,
      outcome,
      whileRunning: 'window',
      keep: 0,
      attempt: undefined,
      publish,
    }
  }
}

function said({ settled, claimed }: SettleAndClaimReply): string {
  return JSON.stringify([settled, claimed.map(({ runId: run, token }) => `${run} ${token}`).toSorted()])
}

process.once('disconnect', () => process.exit())
const worker = new Worker(await open())
process.send?.('ready')
// All processes start at the same time.
await once(process, 'message')
process.once('message', () => worker.noMore())
const working = worker.work()
const writing = Array.from({ length: WRITERS_EACH }, (_, at) => write(call.process * WRITERS_EACH + at))
for (const written of await Promise.all(writing)) process.send?.(written)
process.send?.(await working, undefined, {}, () => process.disconnect())
