// A process that shares a server with others: a receiver that publishes, a worker, or the last worker, which works until
// nothing is left. It writes everything that happens, line by line, to its own file. Arguments: folder, seed, number of the
// life, role, address.
import { openSync, writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { setTimeout } from 'node:timers/promises'
import type { Sluice } from '../../../src/index.ts'
import { appOn } from '../../engine-kill/app.ts'
import { drained } from '../../engine-kill/drained.ts'
import { inputOf, LEASE_OF_MANY, ledgerFile, now, type Line } from '../../engine-kill/load.ts'
import { Chance, seedOf } from '../../sqlite/kill-load.ts'
import { openInMode } from '../direct-calls.ts'
import { WatchedStore } from './watched-store.ts'

const [folder = '', seed = '', number = '0', role = 'work', url = ''] = process.argv.slice(2)
const HEARTBEAT = 250
const CONNECTIONS = 4
const PUBLISHERS = 2
const MOST_AT_ONCE = 4
const LONGEST_PAUSE_MS = 200
const AGAIN_AFTER_MS = 50
const RESENT = 0.05
const TICK_MS = 20
const STALLED_MS = 80

const life = Number(number)
const ledger = openSync(ledgerFile(folder, life), 'a')
const chanceOf = (name: string): Chance => new Chance(seedOf(`${seed} ${number} ${name}`))
let labels = 0
const enough = new AbortController()

function tell(line: Line): void {
  // The operating system has the line when this returns, so the line survives even if the process dies at once.
  writeSync(ledger, `${JSON.stringify(line)}\n`)
}

async function publishOn(app: Sluice, chance: Chance): Promise<void> {
  const acked: string[] = []
  while (!enough.signal.aborted) {
    const batch = Array.from({ length: 1 + chance.below(MOST_AT_ONCE) }, () => `${life}-${labels++}`)
    tell({ kind: 'sending', labels: batch })
    try {
      const answers = await app.publish(batch.map((label) => inputOf(label)))
      tell({ kind: 'acked', answers: batch.map((label, at) => [label, answers[at]?.kind ?? '']) })
      process.send?.('acked')
    } catch {
      for (const label of batch) await resend(app, label, 'unknown')
    }
    acked.push(...batch)
    const known = chance.happens(RESENT) ? acked[chance.below(acked.length)] : undefined
    if (known !== undefined) await resend(app, known, 'acked')
    await setTimeout(chance.next() * LONGEST_PAUSE_MS)
  }
}

/** Publishes like a careful sender: an event without a reply is sent again until there is one. */
async function resend(app: Sluice, label: string, was: 'acked' | 'unknown'): Promise<void> {
  for (;;) {
    try {
      const [answer] = await app.publish(inputOf(label))
      return tell({ kind: 'resent', label, was, answer: answer?.kind ?? '' })
    } catch {
      await setTimeout(AGAIN_AFTER_MS)
    }
  }
}

/** The judge must know when this process could not have done anything. */
function watchTime(stoodStill: (ms: number) => void): void {
  let last = now()
  setInterval(() => {
    const from = last
    last = now()
    if (last - from < STALLED_MS) return
    tell({ kind: 'stalled', from, at: last })
    stoodStill(last - from)
  }, TICK_MS).unref()
}

process.once('disconnect', () => process.exit())
process.on('message', () => enough.abort())
/** On PostgreSQL, the processes differ in who decides the calls that need no rules. */
const bare = await openInMode(url, { connections: CONNECTIONS }, life)
const watched = new WatchedStore(bare, tell)
const options = { store: watched.store, lease: LEASE_OF_MANY, heartbeat: HEARTBEAT, process: `life-${life}` }
const app = appOn(options, chanceOf('handlers'), tell)
app.onAny((name, what) => {
  if (name.startsWith('run.') && 'run' in what) tell({ kind: 'told', at: now(), name, run: what.run })
})
watchTime((ms) => {
  if (ms > LEASE_OF_MANY * 1.15) void watched.settleStale(`life-${life}`).catch(() => {})
})
if (role !== 'receive') await app.start()
// A killed process cannot store its compile cache.
flushCompileCache()
tell({ kind: 'opened', at: now() })
process.send?.('opened')
if (role === 'receive') {
  await Promise.all(Array.from({ length: PUBLISHERS }, (_, at) => publishOn(app, chanceOf(`publisher ${at}`))))
} else if (role === 'drain') await drained(app, tell)
if (role !== 'work') {
  await app.stop()
  await bare.close()
  process.disconnect()
}
