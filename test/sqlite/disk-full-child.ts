// Fills a small file system of its own again and again, and reports how the store reacted. Argument: the mounted folder.
import { closeSync, fstatSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '../../src/errors.ts'
import { encodeText, createClaimRequest, done, createEventToStore } from '../conformance/builders.ts'
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

/** Takes all free space except this many bytes. */
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
  return encodeText(name.repeat(name.endsWith('0') ? 5_000 : 100))
}

/** Several callers at one moment. Returns how many were acknowledged. */
async function append(store: Store): Promise<number> {
  const calls = Array.from({ length: AT_ONCE }, () => `e${names++}`).map(async (name) => {
    const event = createEventToStore(name, { id: name, key: name, body: bodyOf(name) }, Date.now())
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

/** Acknowledged events that cannot be read, and rejected events that are stored nevertheless. */
async function wrong(store: Store): Promise<{ readonly lost: number; readonly there: number }> {
  const found = (await store.readBodies({ events: stored })).bodies
  const lost = stored.filter((name, at) => Buffer.compare(found[at] ?? new Uint8Array(), bodyOf(name)) !== 0)
  const there = (await store.readBodies({ events: failed })).bodies.filter((body) => body !== undefined)
  return { lost: lost.length, there: there.length }
}

async function runAll(store: Store): Promise<number> {
  let ran = 0
  const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  for (let request = 1, leases: readonly { lane: string; token: number }[] = []; ; request++) {
    const settle = leases.map(({ lane, token }) => ({ ...end, lane, token }))
    const reply = await store.settleAndClaim({
      process: 'p',
      request,
      routes: 1,
      settle,
      claim: [createClaimRequest()],
      budget: 0,
    })
    leases = reply.claimed
    ran += leases.length
    if (leases.length === 0) return ran
  }
}

/** More than the page cache holds, so that the disk is full in the middle of the commit and not only at its end. */
const LONG_REASON = 'x'.repeat(20_000)
const SETTLED_AT_ONCE = 260

/** Runs that end while the disk is full are not settled; once there is space, they are. */
async function settleWhileFull(): Promise<readonly string[]> {
  const own = join(folder, 'settled.db')
  const store = await openStore(`sqlite:${own}`)
  const fresh = Array.from({ length: SETTLED_AT_ONCE }, (_, n) =>
    createEventToStore(`s${n}`, { id: `s${n}`, key: `s${n}`, flow: 'settled' }, Date.now()),
  )
  await store.append({ routes: 1, events: fresh })
  const call = { process: 's', routes: 1, budget: 0 }
  const claim = [createClaimRequest({ flow: 'settled', maxRuns: SETTLED_AT_ONCE, lease: 600_000 })]
  const { claimed } = await store.settleAndClaim({ ...call, request: 1, settle: [], claim })
  const outcome = { kind: 'dropped', reason: LONG_REASON } as const
  const end = { outcome, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  const settling = {
    ...call,
    request: 2,
    claim: [],
    settle: claimed.map(({ lane, token }) => ({ ...end, lane, token })),
  }
  const beside = new DatabaseSync(own, { readOnly: true })
  const dropped = (): number => Number(beside.prepare('select count(*) as n from runs').get()?.['n'])
  const ended: string[] = []
  fillDisk(65_536)
  const refused = await Promise.allSettled([store.settleAndClaim(settling), store.renew({ lease: 600_000, runs: [] })])
  for (const one of refused) if (one.status === 'fulfilled') ended.push('settled on a full disk')
  if (dropped() > 0) ended.push('runs of an undone commit are in the file')
  rmSync(ballast)
  const { settled } = await store.settleAndClaim(settling)
  if (settled.some((answer) => answer !== 'ok')) ended.push(`with space again: ${settled.find((one) => one !== 'ok')}`)
  if (dropped() !== SETTLED_AT_ONCE) ended.push('not all have ended')
  beside.close()
  await store.close()
  rmSync(own)
  return ended
}

let store = await openStore(`sqlite:${file}`)
const offences: unknown[] = [...(await settleWhileFull())]
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
