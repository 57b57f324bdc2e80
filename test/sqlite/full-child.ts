// Fills a small file system of its own, again and again, and says what the store made of it. Argument: the mounted folder.
import { closeSync, fstatSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '../../src/errors.ts'
import { bytes, claimOf, done, newEvent } from '../../src/store/conformance/vocabulary.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'

const CYCLES = 20
const AT_ONCE = 4

const [folder = ''] = process.argv.slice(2)
const file = join(folder, 'store.db')
const ballast = join(folder, 'ballast')
const stored: string[] = []
const failed: string[] = []
const codes = new Set<string>()
let names = 0

/** Takes all the space that is left, but for so many bytes. */
function fillDisk(slack: number): void {
  const descriptor = openSync(ballast, 'w')
  for (let piece = Buffer.alloc(65_536); ;) {
    try {
      writeSync(descriptor, piece)
    } catch {
      if (piece.length === 1) break
      piece = piece.subarray(0, Math.floor(piece.length / 16))
    }
  }
  ftruncateSync(descriptor, Math.max(0, fstatSync(descriptor).size - slack))
  closeSync(descriptor)
}

function bodyOf(name: string): Uint8Array {
  return bytes(name.repeat(name.endsWith('0') ? 5_000 : 100))
}

/** Some callers of one moment. How many were acknowledged. */
async function append(store: Store): Promise<number> {
  const calls = Array.from({ length: AT_ONCE }, () => `e${names++}`).map(async (name) => {
    const event = newEvent(name, { id: name, key: name, body: bodyOf(name) }, Date.now())
    try {
      const [result] = (await store.append({ routes: 1, events: [event] })).results
      if (result?.kind !== 'stored') throw new TypeError(`${name} was answered ${result?.kind}`)
      stored.push(name)
      return 1
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
      codes.add(error.code)
      failed.push(name)
      return 0
    }
  })
  return (await Promise.all(calls)).reduce<number>((sum, one) => sum + one, 0)
}

async function untilFull(store: Store): Promise<void> {
  while ((await append(store)) > 0);
}

/** Of what was acknowledged, what cannot be read; of what was refused, what is there all the same. */
async function wrong(store: Store): Promise<{ readonly lost: number; readonly there: number }> {
  const found = (await store.bodies({ events: stored })).bodies
  const lost = stored.filter((name, at) => Buffer.compare(found[at] ?? new Uint8Array(), bodyOf(name)) !== 0)
  const there = (await store.bodies({ events: failed })).bodies.filter((body) => body !== undefined)
  return { lost: lost.length, there: there.length }
}

async function runAll(store: Store): Promise<number> {
  let ran = 0
  const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  for (let request = 1, leases: readonly { lane: string; token: number }[] = []; ; request++) {
    const settle = leases.map(({ lane, token }) => ({ ...end, lane, token }))
    const reply = await store.turn({ process: 'p', request, routes: 1, settle, claim: [claimOf()], budget: 0 })
    leases = reply.claimed
    ran += leases.length
    if (leases.length === 0) return ran
  }
}

let store = await openStore(`sqlite:${file}`)
const offences: unknown[] = []
for (let cycle = 0; cycle < CYCLES; cycle++) {
  if ((await append(store)) !== AT_ONCE) offences.push(`cycle ${cycle} could not begin`)
  fillDisk(cycle * 8_192)
  await untilFull(store)
  const found = await wrong(store)
  if (found.lost + found.there > 0) offences.push(found)
  rmSync(ballast)
}
await store.close()
fillDisk(0)
const opened = await openStore(`sqlite:${file}`).then(
  (full) => full.close().then(() => 'opened'),
  (error: unknown) => (error instanceof SluiceError ? error.code : String(error)),
)
rmSync(ballast)
store = await openStore(`sqlite:${file}`)
const end = await wrong(store)
const ran = await runAll(store)
await store.close()
const db = new DatabaseSync(file)
const integrity = Object.values(db.prepare('pragma integrity_check').get() ?? {})[0]
db.close()
console.log(
  JSON.stringify({
    ...end,
    offences,
    codes: [...codes],
    stored: stored.length,
    failed: failed.length,
    ran,
    integrity,
    opened,
  }),
)
