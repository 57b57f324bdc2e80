// An app that publishes without end and runs the events, even if the lock of its file is removed. It writes what
// happens, line by line, to a file that all processes of the test share. Arguments: database, journal, name,
// lease, and `intrude` for a process that removes the lock of the other one.
import { openSync, rmSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { SluiceError } from '../../src/errors.ts'
import { Sluice } from '../../src/index.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'

/** A line of the journal, its words with spaces between. */
export interface Line {
  readonly what: 'opened' | 'acked' | 'refused' | 'began' | 'ended'
  readonly by: string
  readonly detail: string
  readonly at: number
}

const [file = '', journal = '', name = '', lease = '', how = ''] = process.argv.slice(2)
const PUBLISHERS = 3
const BATCH = 3
const LONGEST_MS = 10
const lines = openSync(journal, 'a')
let published = 0

/** One write is one line: the system appends those of several processes one after the other. */
function tell(what: Line['what'], detail: string): void {
  writeSync(lines, `${what} ${name} ${detail} ${Date.now()}\n`)
}

async function publish(app: Sluice): Promise<never> {
  for (;;) {
    const labels = Array.from({ length: BATCH }, () => `${name}-${published++}`)
    try {
      await app.publish(labels.map((label) => ({ type: 'ping', data: { label } })))
      for (const label of labels) tell('acked', label)
    } catch (error) {
      tell('refused', error instanceof Error && 'code' in error ? String(error.code) : String(error))
      await setTimeout(LONGEST_MS)
    }
    await setTimeout(LONGEST_MS * Math.random())
  }
}

const labelOf = (event: { readonly data: unknown }): string => (event.data as { label: string }).label

/**
 * The store opens in the same pass of the event loop in which the lock is removed, so the other process has no time to take it
 * back. It may still hold the database for longer than the store waits.
 */
async function open(): Promise<Store> {
  for (;;) {
    try {
      if (how === 'intrude') rmSync(`${file}-lock`, { force: true })
      return await openSqliteStore({ file })
    } catch (error) {
      if (!(error instanceof SluiceError && error.code === 'STORE_IN_USE')) throw error
      await setTimeout(1)
    }
  }
}

const app = new Sluice({ store: await open(), process: name, lease: Number(lease), heartbeat: '200ms', log: false })
app.flow('work', {
  on: 'ping',
  key: labelOf,
  run: async ({ key, signal }) => {
    tell('began', key)
    await setTimeout(LONGEST_MS * Math.random(), undefined, { signal }).finally(() => tell('ended', key))
  },
})
await app.start()
tell('opened', file)
for (let n = 0; n < PUBLISHERS; n++) void publish(app)
