// R4: when nearly all connections are open, a new one closes the connection that is idle longest, so that no sender can keep others
// out by holding connections open.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AnyListener } from '../../src/observe/emitter.ts'
import { served, until, Wire, type Served, type Serving } from './rig.ts'

/** So long that no connection is closed for being slow during a test. */
const PATIENT = { headersTimeout: 600_000, requestTimeout: 600_000, keepAliveTimeout: 600_000, checkInterval: 1_000 }
const tls = {
  key: readFileSync(new URL('./fixtures/localhost-key.pem', import.meta.url)),
  cert: readFileSync(new URL('./fixtures/localhost-cert.pem', import.meta.url)),
}
/** The server sends 100 as soon as the request is in progress. */
const BEGUN = 'POST /in/github HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n'

function servedWith(connections: number, more: Serving = {}): Promise<Served> {
  return served({ bounds: { ...PATIENT, maxConnections: connections }, ...more })
}

/** Sends a request and returns its status; 0 if the connection was closed. */
async function ask(wire: Wire): Promise<number> {
  const before = wire.text.split('HTTP/1.1 ').length - 1
  await wire.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n').answers(before + 1)
  return wire.text.split('HTTP/1.1 ').length - 1 > before ? wire.status : 0
}

async function idle(port: number, times: number, address?: string): Promise<readonly Wire[]> {
  const wires: Wire[] = []
  for (let n = 0; n < times; n++) {
    const wire = new Wire(port, address)
    expect(await ask(wire)).toBe(200)
    wires.push(wire)
  }
  return wires
}

async function askTls(socket: TLSSocket): Promise<void> {
  socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /)
}

describe('R4 near the maximum number of connections', () => {
  it('the connection that is idle longest is closed for a new one, and the others continue', async () => {
    const { port, connections } = await servedWith(10)
    const wires = await idle(port, 9)
    // Now the first connection has been idle for the shortest time.
    expect(await ask(wires[0] as Wire)).toBe(200)
    const [further] = await idle(port, 1)
    expect(connections()).toEqual({ open: 9, refused: 0, closedIdle: 1, closedSlow: 0 })
    await wires[1]?.closed
    for (const wire of [...wires.slice(2), wires[0], further]) expect(await ask(wire as Wire)).toBe(200)
  })

  it('ten networks with all their idle connections keep nobody out', async () => {
    const { port, connections } = await servedWith(30, { listen: { connectionsPerAddress: 3 } })
    for (let network = 1; network <= 10; network++) await idle(port, 3, `127.0.1.${network}`)
    await idle(port, 3, '127.0.2.1')
    await until(() => connections().open === 27)
    expect(connections()).toEqual({ open: 27, refused: 0, closedIdle: 6, closedSlow: 0 })
  })

  it('a connection that has sent nothing, or only a part of its headers, counts as idle', async () => {
    const { port, connections } = await servedWith(10)
    const silent: Wire[] = []
    for (const text of ['', 'GET / HTTP/1.1\r\nx-slow: 1', '', 'POST /in/github HTTP/1.1\r\n']) {
      silent.push(text === '' ? new Wire(port) : new Wire(port).write(text))
      await until(() => connections().open === silent.length)
    }
    await idle(port, 9)
    await Promise.all(silent.map(({ closed }) => closed))
    expect(connections()).toMatchObject({ refused: 0, closedIdle: 4 })
  })

  it('a connection with a request in progress is not closed, also after pipelining two requests', async () => {
    const { port, connections } = await servedWith(10)
    const pipelined = new Wire(port).write(`GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n${BEGUN}`)
    await pipelined.answers(2)
    const busy = Array.from({ length: 8 }, () => new Wire(port).write(BEGUN))
    await Promise.all(busy.map((wire) => wire.answers()))
    const [first] = await idle(port, 1)
    const [second] = await idle(port, 1)
    await first?.closed
    expect(connections()).toMatchObject({ refused: 0, closedIdle: 1 })
    for (const wire of [pipelined, ...busy]) {
      const before = wire.text.split('HTTP/1.1 ').length
      await wire.write('{"a":"b"}').answers(before)
      expect(wire.status).toBe(401)
    }
    expect(await ask(second as Wire)).toBe(200)
  })

  it('a TLS connection is closed too, during its handshake or after it', async () => {
    const { port, connections } = await servedWith(10, { listen: { tls } })
    const handshaking = new Wire(port)
    await until(() => connections().open === 1)
    const greeted = async (): Promise<TLSSocket> => {
      const socket = connectTls({ port, host: '127.0.0.1', ca: tls.cert, servername: 'localhost' })
      onTestFinished(() => void socket.destroy())
      await once(
        socket.on('error', () => {}),
        'secureConnect',
      )
      return socket
    }
    const sockets: TLSSocket[] = []
    for (let n = 0; n < 9; n++) sockets.push(await greeted())
    expect(connections().closedIdle).toBe(1)
    await handshaking.closed
    for (const socket of sockets) await askTls(socket)
    const ended = once((sockets[0] as TLSSocket).resume(), 'close')
    await askTls(await greeted())
    expect(connections()).toEqual({ open: 9, refused: 0, closedIdle: 2, closedSlow: 0 })
    await ended
    for (const socket of sockets.slice(1)) await askTls(socket)
  })

  it('ten networks that send bodies slowly keep nobody out: the one with most connections loses its slowest body', async () => {
    const { port, connections } = await servedWith(30, { listen: { connectionsPerAddress: 3 } })
    const slow: Wire[] = []
    for (let network = 1; network <= 10; network++) {
      for (let n = 0; n < 3; n++) {
        const wire = new Wire(port, `127.0.1.${network}`).write(BEGUN)
        await wire.answers()
        slow.push(wire)
      }
    }
    expect(connections()).toEqual({ open: 30, refused: 0, closedIdle: 0, closedSlow: 0 })
    await idle(port, 1, '127.0.2.1')
    await slow[0]?.closed
    expect(connections()).toMatchObject({ refused: 0, closedIdle: 0, closedSlow: 1 })
    // The other requests go on.
    for (const wire of slow.slice(1)) {
      await wire.write('{"a":"b"}').answers(2)
      expect(wire.status).toBe(401)
    }
  })

  it('the network with the most connections makes no room for itself', async () => {
    const { port, connections } = await servedWith(10)
    const one = new Wire(port, '127.0.1.1').write(BEGUN)
    await one.answers()
    for (let n = 0; n < 9; n++) await new Wire(port, '127.0.1.2').write(BEGUN).answers()
    await new Wire(port, '127.0.1.2').write(BEGUN).closed
    expect(connections()).toEqual({ open: 10, refused: 1, closedIdle: 0, closedSlow: 0 })
    await one.write('{"a":"b"}').answers(2)
    expect(one.status).toBe(401)
  })

  it('an alert reports it once, until fewer connections are open', async () => {
    const heard: string[] = []
    const emit: AnyListener = (name, what) => void heard.push(`${name} ${'alert' in what ? what.alert : ''}`)
    const { port, connections } = await servedWith(10, { emit })
    const wires = [...(await idle(port, 9))]
    expect(heard).toEqual([])
    wires.push(...(await idle(port, 3)))
    expect(heard).toEqual(['alert.raised connections'])
    for (const { socket } of wires) socket.destroy()
    await until(() => connections().open === 0)
    expect(heard).toEqual(['alert.raised connections', 'alert.cleared connections'])
  })
})
