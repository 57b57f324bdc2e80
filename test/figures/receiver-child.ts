// The receiver of the calls under a limit: a server in a process of its own, so that stalls of the sender do not affect its clock.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'

export interface Seen {
  /** Times of arrival in milliseconds on its own monotonic clock, in order. */
  readonly arrivals: readonly number[]
  /** How late this process itself was at most, in ms, because it had no core: the error of its times. */
  readonly lag: number
}

/** The requests of the parent, and the replies. */
export type Asked = 'how many' | 'what'
export type Answer = number | Seen

const LOOK_EVERY = 5

const delay = monitorEventLoopDelay({ resolution: LOOK_EVERY })
const arrivals: number[] = []

const server = createServer((request, response) => {
  arrivals.push(Number(process.hrtime.bigint()) / 1e6)
  request.resume()
  response.end('ok')
})

server.listen(0, '127.0.0.1', () => {
  delay.enable()
  process.send?.((server.address() as AddressInfo).port)
})
process.on('message', (asked: Asked) => {
  const lag = Math.max(0, delay.max / 1e6 - LOOK_EVERY)
  process.send?.(asked === 'what' ? ({ arrivals, lag } satisfies Seen) : arrivals.length)
})
process.on('disconnect', () => process.exit())
