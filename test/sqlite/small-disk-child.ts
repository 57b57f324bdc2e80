// Fills a small disk with events of 1 KB, one commit each, then frees some of it, and reports how far each step came.
// Argument: the mounted folder.
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { SluiceError } from '../../src/errors.ts'
import { createEventToStore } from '../conformance/builders.ts'
import { openStore } from '../../src/store/open.ts'

const FREED_LATER = 1_048_576
/** More commits than fit into the freed space if the log kept each of them. */
const AFTERWARDS = 200

const [folder = ''] = process.argv.slice(2)
const file = join(folder, 'store.db')
const ballast = join(folder, 'ballast')
const held = openSync(ballast, 'w')
writeSync(held, Buffer.alloc(FREED_LATER))
closeSync(held)
const store = await openStore(`sqlite:${file}`)

/** Returns how many events were stored before the first failure, and its code. */
async function append(prefix: string, most: number): Promise<{ readonly stored: number; readonly code: string }> {
  for (let stored = 0; stored < most; stored++) {
    const name = `${prefix}${stored}`
    const event = createEventToStore(name, { id: name, key: name, body: Buffer.alloc(1_024, name) }, Date.now())
    try {
      await store.append({ routes: 1, events: [event] })
    } catch (error) {
      return { stored, code: error instanceof SluiceError ? error.code : String(error) }
    }
  }
  return { stored: most, code: '' }
}

const filled = await append('a', Infinity)
const bytes = statSync(file).size
rmSync(ballast)
const again = await append('b', AFTERWARDS)
const { count } = await store.count({ kind: 'events', filter: {}, cursor: '', atMost: 100_000 })
await store.close()
console.log(JSON.stringify({ filled, bytes, again, isComplete: count === filled.stored + again.stored }))
