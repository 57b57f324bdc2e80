// Sends webhooks over kept-alive connections, one at a time on each, and counts the 2xx responses. It is a process of its own,
// so that the server has a core to itself. Arguments: port, connections, seconds, requests per second (0: unbounded), seed.
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { requestOf, signedBodies } from './webhooks.ts'

const [port = '0', connections = '64', seconds = '5', rate = '0', seed = 'a'] = process.argv.slice(2)
const bodies = signedBodies()
const HEAD_END = Buffer.from('\r\n\r\n')

let sent = 0
let accepted = 0
let busy = 0
let other = 0
const late: number[] = []

function nextRequest(): Buffer {
  const n = sent++
  return requestOf(bodies[n % bodies.length] ?? { body: Buffer.alloc(0), signature: '' }, `${seed}-${n}`)
}

/** Resolves with the status of the response. */
class Connection {
  readonly #socket: Socket
  #read: Buffer = Buffer.alloc(0)
  #answered: (status: number) => void = () => {}

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('error', () => this.#answered(0))
    socket.on('close', () => this.#answered(0))
  }

  static open(): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), '127.0.0.1', () => resolve(new Connection(socket)))
      socket.once('error', reject)
    })
  }

  send(request: Buffer): Promise<number> {
    return new Promise((resolve) => {
      this.#answered = resolve
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    this.#read = this.#read.length === 0 ? chunk : Buffer.concat([this.#read, chunk])
    const end = this.#read.indexOf(HEAD_END)
    if (end === -1) return
    const head = this.#read.toString('latin1', 0, end)
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (this.#read.length < end + HEAD_END.length + length) return
    this.#read = this.#read.subarray(end + HEAD_END.length + length)
    this.#answered(Number(head.slice(9, 12)))
  }
}

function count(status: number): void {
  if (status >= 200 && status < 300) accepted++
  else if (status === 503) busy++
  else other++
}

async function flood(all: readonly Connection[], until: number): Promise<void> {
  await Promise.all(
    all.map(async (one) => {
      while (performance.now() < until) count(await one.send(nextRequest()))
    }),
  )
}

/** Sends at a fixed rate, even if responses are slow: the latency of a response counts from when its request was due. */
async function pace(all: readonly Connection[], began: number, until: number): Promise<void> {
  const every = 1_000 / Number(rate)
  let next = began
  await Promise.all(
    all.map(async (one) => {
      for (let due = next; due < until; due = next) {
        next += every
        const wait = due - performance.now()
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
        count(await one.send(nextRequest()))
        late.push(performance.now() - due)
      }
    }),
  )
}

const all = await Promise.all(Array.from({ length: Number(connections) }, () => Connection.open()))
const began = performance.now()
const until = began + Number(seconds) * 1_000
await (Number(rate) > 0 ? pace(all, began, until) : flood(all, until))
const millis = performance.now() - began
for (const one of all) one.close()
late.sort((a, b) => a - b)
const at = (share: number): number => late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? 0
console.log(JSON.stringify({ accepted, busy, other, millis, p50: at(0.5), p99: at(0.99) }))
