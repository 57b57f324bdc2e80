// Records when each request arrives at the stand-in, in a thread of its own that does nothing else. The
// stand-in itself handles requests when it has time, so it cannot measure the time between them.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { Lag } from '../../../examples/kit/lag.ts'

interface Noted {
  /** The times of arrival, in ms. */
  readonly times: readonly number[]
  /** How late the doorman's own clock was read at most. */
  readonly lag: number
}

export interface Doorman {
  /** The address of the doorman. */
  readonly url: string
  noted(): Promise<Noted>
  stop(): Promise<unknown>
}

/** Starts a doorman in front of the HTTP server at this address. */
export async function doorman(address: string): Promise<Doorman> {
  const worker = new Worker(new URL(import.meta.url), { workerData: Number(new URL(address).port) })
  const [port] = (await once(worker, 'message')) as [number]
  return {
    url: `http://127.0.0.1:${port}`,
    async noted() {
      const answer = once(worker, 'message') as Promise<[Noted]>
      worker.postMessage('what')
      return (await answer)[0]
    },
    stop: () => worker.terminate(),
  }
}

/** Requests are short and follow each other, so each starts where a chunk starts with its method. */
const BEGINNING = /^(?:GET|POST|PATCH) \//

function stand(target: number): void {
  const times: number[] = []
  const lag = new Lag()
  const server = createServer((guest) => {
    const host = connect(target, '127.0.0.1')
    guest.on('data', (piece) => {
      if (BEGINNING.test(piece.subarray(0, 8).toString('latin1'))) times.push(performance.now())
      host.write(piece)
    })
    host.pipe(guest)
    guest.on('end', () => host.end())
    // A killed process resets its connections.
    guest.on('error', () => host.destroy())
    host.on('error', () => guest.destroy())
  })
  server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port))
  parentPort?.on('message', () => parentPort?.postMessage({ times, lag: lag.most } satisfies Noted))
}

if (!isMainThread && typeof workerData === 'number') stand(workerData)
