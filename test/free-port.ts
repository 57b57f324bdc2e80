// Chooses a port for a server that a test starts, so that the server can use the same port again after a crash.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

// The range is below the ports of outgoing connections, one of which could take the port while the server is down.
const FIRST = 15_000
const END = 32_000
const TRIES = 50

export async function freePort(): Promise<number> {
  for (let left = TRIES; left > 0; left -= 1) {
    const port = randomInt(FIRST, END)
    if (await isFree(port)) return port
  }
  throw new Error(`None of ${TRIES} ports was free.`)
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  try {
    probe.listen(port, '127.0.0.1')
    await once(probe, 'listening')
    probe.close()
    await once(probe, 'close')
    return true
  } catch {
    return false
  }
}
