// Runs in a thread of its own, on a connection of its own: copies pages from the log into the file when it is told to.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

/** While it copies, more is committed: each time less. */
const TIMES = 3

const db = new DatabaseSync(workerData as string)
db.exec('pragma synchronous = full; pragma busy_timeout = 5000; pragma cache_size = -64')
const writeBack = db.prepare('pragma wal_checkpoint(passive)')

parentPort?.on('message', (told: 'write back' | 'close') => {
  if (told === 'close') {
    db.close()
    parentPort?.close()
    return
  }
  for (let time = 0; time < TIMES; time++) writeBack.get()
  parentPort?.postMessage('done')
})
