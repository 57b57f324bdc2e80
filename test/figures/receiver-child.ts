// The other side of a limit: a server in a process of its own, whose clock and event loop know nothing of the sender's stalls.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What it may be asked, and what it answers. */
export type Asked = 'how many' | 'when'
export type Answer = number | readonly number[]

const arrivals: number[] = []

const server = createServer((request, response) => {
  arrivals.push(Number(process.hrtime.bigint()) / 1e6)
  request.resume()
  response.end('ok')
})

server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('message', (asked: Asked) => process.send?.(asked === 'when' ? arrivals : arrivals.length))
process.on('disconnect', () => process.exit())
