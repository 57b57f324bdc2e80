// This thread copies pages from the log into the file, on its own connection, when it receives a message.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

/** While a pass copies, new pages are committed; each pass has fewer left. */
const TIMES = 3

const db = new DatabaseSync(workerData as string)
db.exec('pragma synchronous = full; pragma busy_timeout = 5000; pragma cache_size = -64')
const writeBack = db.prepare('pragma wal_checkpoint(passive)')

parentPort?.on('message', (message: 'write back' | 'close') => {
  if (message === 'close') {
    db.close()
    parentPort?.close()
    return
  }
  try {
    for (let time = 0; time < TIMES; time++) writeBack.get()
  } catch {
    // The disk may be full. The log keeps everything, and the next message tries again.
  }
  parentPort?.postMessage('done')
})
