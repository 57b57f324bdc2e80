// An app that publishes without end and works on what there is, whatever becomes of the lock of its file. It writes what
// happens, line by line, to a file that all processes of the test share. Arguments: database, journal, name.
import { openSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { Sluice } from '../../src/index.ts'

/** A line of the journal, its words with spaces between. */
export interface Line {
  readonly what: 'opened' | 'acked' | 'refused' | 'began' | 'ended'
  readonly by: string
  readonly detail: string
}

const [file = '', journal = '', name = ''] = process.argv.slice(2)
const PUBLISHERS = 3
const BATCH = 3
const LONGEST_MS = 10
const lines = openSync(journal, 'a')
let published = 0

/** One write is one line: the system appends those of several processes one after the other. */
function tell(what: Line['what'], detail: string): void {
  writeSync(lines, `${what} ${name} ${detail}\n`)
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

for (;;) {
  const app = new Sluice({ store: `sqlite:${file}`, process: name, lease: '900ms', heartbeat: '200ms', log: false })
  app.flow('work', {
    on: 'ping',
    key: labelOf,
    run: async ({ key, signal }) => {
      tell('began', key)
      await setTimeout(LONGEST_MS * Math.random(), undefined, { signal }).finally(() => tell('ended', key))
    },
  })
  try {
    await app.start()
    tell('opened', file)
    for (let n = 0; n < PUBLISHERS; n++) void publish(app)
    break
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'STORE_IN_USE')) throw error
    await setTimeout(1)
  }
}
