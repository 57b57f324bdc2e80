// The publishers: through their own apps, and inside transactions that are committed or rolled back. A publisher repeats a call
// until it has a reply, and now and then sends known events again.
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import type { Sluice } from '../../../src/index.ts'
import { Chance, seedOf } from '../../sqlite/kill-load.ts'
import type { Ledger, Sent } from './ledger.ts'
import { inputOf, type Topic } from './plan.ts'
import { noteError, untilAnswered } from './patient.ts'

export interface Publisher {
  readonly app: Sluice
  readonly name: string
  readonly ledger: Ledger
  readonly seed: number
  readonly batches: number
}

const MOST_AT_ONCE = 5
const LONGEST_PAUSE_MS = 60
const RESENT = 0.15
const CHANGED = 0.3
const ROLLED_BACK = 0.3
/** One batch in this many has an event that is placed late. */
const LATE_EVERY = 25
const LATE: readonly Topic[] = ['odd', 'odd', 'odd', 'wide']

export async function publishOn(publisher: Publisher): Promise<void> {
  const { name, seed, batches } = publisher
  const chance = new Chance(seedOf(`${seed} ${name}`))
  const own: Sent[] = []
  for (let batch = 0; batch < batches; batch++) {
    const sent = batchOf(publisher, chance, batch, own.length)
    own.push(...sent)
    await publish(publisher, sent)
    const known = chance.happens(RESENT) ? own[chance.below(own.length)] : undefined
    if (known !== undefined) await resend(publisher, known, chance.happens(CHANGED))
    await setTimeout(chance.next() * LONGEST_PAUSE_MS)
  }
}

function batchOf({ name, ledger }: Publisher, chance: Chance, batch: number, from: number): readonly Sent[] {
  const late = batch % LATE_EVERY === LATE_EVERY - 1 ? LATE[chance.below(LATE.length)] : undefined
  return Array.from({ length: 1 + chance.below(MOST_AT_ONCE) }, (_, at) =>
    sending(ledger, { publisher: name, n: from + at, topic: at === 0 ? late : undefined }),
  )
}

interface Sending {
  readonly publisher: string
  readonly n: number
  readonly topic?: Topic | undefined
  readonly inTransaction?: boolean
}

function sending(ledger: Ledger, { publisher, n, topic, inTransaction = false }: Sending): Sent {
  const sent: Sent = {
    input: inputOf(`${publisher}-${n}`, topic),
    publisher,
    n,
    isPlacedLate: inTransaction || topic !== undefined,
    isPlacedAlone: topic !== undefined,
    began: Date.now(),
    acked: undefined,
    rolledBack: false,
    receipts: 0,
    unknown: 0,
  }
  ledger.sent.set(sent.input.id, sent)
  return sent
}

/** Records an event as stored. */
export async function publishOne(app: Sluice, ledger: Ledger, publisher: string, topic: Topic): Promise<Sent> {
  const sent = sending(ledger, { publisher, n: 0, topic })
  await publish({ app, ledger }, [sent])
  return sent
}

/** Publishes all events in one call, and then each by itself until it has a reply. */
async function publish({ app, ledger }: Pick<Publisher, 'app' | 'ledger'>, sent: readonly Sent[]): Promise<void> {
  try {
    const answers = await app.publish(sent.map(({ input }) => input))
    for (const [at, one] of sent.entries()) {
      one.acked = Date.now()
      const kind = answers[at]?.kind
      if (kind !== 'stored') ledger.wrong.push(`${one.input.id} was published first, and answered ${kind}`)
    }
    return
  } catch (error) {
    noteError(ledger, 'publish', error)
    for (const one of sent) one.unknown++
  }
  for (const one of sent) {
    const failed = (): void => void one.unknown++
    const [answer] = await untilAnswered(ledger, 'publish', () => app.publish(one.input), failed)
    one.acked = Date.now()
    if (answer?.kind === 'duplicate') one.receipts++
    else if (answer?.kind !== 'stored' && answer?.kind !== 'repeated')
      ledger.wrong.push(`${one.input.id} was sent until it was stored, and answered ${answer?.kind}`)
  }
}

/**
 * Sends an event with the same dedupe id and another id, as a sender does that has forgotten it; with `changed`, also with
 * other data.
 */
async function resend({ app, ledger }: Publisher, known: Sent, changed: boolean): Promise<void> {
  const { input } = known
  const data = changed ? { ...input.data, changed } : input.data
  const wanted = changed ? 'conflict' : 'duplicate'
  try {
    const id = `again-${input.id}-${known.receipts + known.unknown}`
    const [answer] = await app.publish({ ...input, data, id, dedupeId: input.id })
    known.receipts++
    if (answer?.kind !== wanted) ledger.wrong.push(`${input.id} was sent again, and answered ${answer?.kind}`)
  } catch (error) {
    noteError(ledger, 'publish', error)
    known.unknown++
  }
}

/** Transactions of a connection that is never terminated, so their outcome is certain. */
export async function publishInTransactions(publisher: Publisher & { readonly url: string }): Promise<void> {
  const { app, name, ledger, seed, batches, url } = publisher
  const chance = new Chance(seedOf(`${seed} ${name}`))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (let batch = 0; batch < batches; batch++) {
      const sent = Array.from({ length: 1 + chance.below(MOST_AT_ONCE) }, (_, n) =>
        sending(ledger, { publisher: `${name}${batch}`, n, inTransaction: true }),
      )
      const inputs = sent.map(({ input }) => input)
      await client.query('begin')
      // Only the app's store may be unreachable; the app needs it for the first call.
      await untilAnswered(ledger, 'publish', () => app.publish(inputs, { tx: client }))
      await setTimeout(chance.next() * LONGEST_PAUSE_MS)
      const rollsBack = chance.happens(ROLLED_BACK)
      await client.query(rollsBack ? 'rollback' : 'commit')
      for (const one of sent) {
        if (rollsBack) one.rolledBack = true
        else one.acked = Date.now()
      }
    }
  } finally {
    await client.end()
  }
}
