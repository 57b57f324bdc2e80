// Stands at the door of the stand-in, in a thread of its own that does nothing else, and notes when each request comes. The
// stand-in itself looks at requests when it has time, and so cannot say how close they were.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { Lag } from '../../../examples/notion-nextup/stand-in/lag.ts'

interface Noted {
  /** In ms. */
  readonly times: readonly number[]
  /** How late the doorman was at most. */
  readonly lag: number
}

export interface Doorman {
  /** Where to knock. */
  readonly url: string
  noted(): Promise<Noted>
  stop(): Promise<unknown>
}

/** Before a server of HTTP at this address. */
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

/** Requests are short and follow each other: one begins where a piece begins with its method. */
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
    // A process that is killed leaves as it likes.
    guest.on('error', () => host.destroy())
    host.on('error', () => guest.destroy())
  })
  server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port))
  parentPort?.on('message', () => parentPort?.postMessage({ times, lag: lag.most } satisfies Noted))
}

if (!isMainThread && typeof workerData === 'number') stand(workerData)
