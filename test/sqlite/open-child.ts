// Opens a file in a process of its own, reports the result, and holds it until it is killed or told to stop.
// Arguments: file, the user to become ('' for none), 'read' or 'work', 'hold' or 'leave'.
import { performance } from 'node:perf_hooks'
import { SluiceError } from '../../src/errors.ts'
import { createEventToStore } from '../conformance/builders.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'

const [file = '', user = '', how = 'work', then = 'leave'] = process.argv.slice(2)

/** The output. */
export interface Opening {
  readonly ms: number
  readonly code?: string
  readonly message?: string
  readonly events?: number
}

// After all modules are loaded, because that user may not be allowed to read them.
if (user !== '') {
  process.setgid?.(Number(user))
  process.setuid?.(Number(user))
}
const begin = performance.now()
try {
  const store = await openSqliteStore({ file, readOnly: how === 'read' })
  const ms = performance.now() - begin
  if (how === 'work')
    await store.append({ routes: 1, events: [createEventToStore('held', { id: 'held' }, Date.now())] })
  tell({ ms, events: (await store.count({ kind: 'events', filter: {}, cursor: '', atMost: 1_000 })).count })
  if (then === 'hold') setInterval(() => {}, 60_000)
  else await store.close()
} catch (error) {
  if (!(error instanceof SluiceError)) throw error
  tell({ ms: performance.now() - begin, code: error.code, message: error.message })
}

function tell(opening: Opening): void {
  console.log(JSON.stringify(opening))
}
