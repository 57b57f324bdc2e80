// The other side of a limit: a server in a process of its own, whose clock and event loop know nothing of the sender's stalls.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'

export interface Seen {
  /** Milliseconds on its own monotonic clock, in order. */
  readonly arrivals: readonly number[]
  /** How late this process itself was at worst, in ms, for want of a core: its times are not truer than that. */
  readonly lag: number
}

/** What it may be asked, and what it answers. */
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
