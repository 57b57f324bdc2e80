// R4: one address has a bounded number of connections. Its open ones continue, and other addresses are not affected.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Sluice, type EventMap } from '../../src/index.ts'
import { ConnectionLimiter, type ConnectionCounts } from '../../src/http/connections.ts'
import type { ListenOptions } from '../../src/http/server.ts'
import { trustedProxies } from '../../src/http/trusted-proxies.ts'
import { eventsIn } from '../receive/scene.ts'
import { listening, onTheWire, Wire } from './rig.ts'

const tls = {
  key: readFileSync(new URL('./fixtures/localhost-key.pem', import.meta.url)),
  cert: readFileSync(new URL('./fixtures/localhost-cert.pem', import.meta.url)),
}

/** The other side sees the end of a connection a few turns later. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

let sent = 0

/** Sends a webhook and returns its status; 0 if the connection was closed. */
async function ask(wire: Wire): Promise<number> {
  const before = wire.text.split('HTTP/1.1 ').length - 1
  const text = await wire.write(onTheWire('{}', { delivery: `c${++sent}` })).answers(before + 1)
  return text.split('HTTP/1.1 ').length - 1 === before ? 0 : wire.status
}

async function asked(port: number, times: number): Promise<readonly Wire[]> {
  const wires: Wire[] = []
  for (let n = 0; n < times; n++) {
    const wire = new Wire(port)
    expect(await ask(wire)).toBe(202)
    wires.push(wire)
  }
  return wires
}

describe('connections of one address', () => {
  it('above the bound are closed unread, and open ones continue', async () => {
    const { port, store, connections } = await listening({ connectionsPerAddress: 3 })
    const wires = await asked(port, 3)
    for (let n = 0; n < 5; n++) {
      const further = new Wire(port)
      expect(await ask(further)).toBe(0)
      expect(further.text).toBe('')
    }
    expect(connections()).toEqual({ open: 3, refused: 5, closedIdle: 0, closedSlow: 0 })
    for (const wire of wires) expect(await ask(wire)).toBe(202)
    expect(await eventsIn(store)).toHaveLength(6)
  })

  it('are at most 1,000 by default', async () => {
    const { port, connections } = await listening()
    const wires = Array.from({ length: 1_000 }, () => new Wire(port))
    await until(() => connections().open === 1_000)
    expect(await ask(new Wire(port))).toBe(0)
    expect(await ask(wires[0] as Wire)).toBe(202)
    expect(connections()).toEqual({ open: 1_000, refused: 1, closedIdle: 0, closedSlow: 0 })
  })

  it('free their place when they close, in any way', async () => {
    const { port, connections } = await listening({ connectionsPerAddress: 2 })
    const [kept] = await asked(port, 1)
    const ends: ((wire: Wire) => unknown)[] = [
      (wire) => wire.socket.destroy(),
      (wire) => wire.socket.end(),
      (wire) => wire.socket.resetAndDestroy(),
      (wire) => wire.write('no http at all\r\n\r\n'),
      (wire) => wire.write('POST /in/github HTTP/1.1\r\ncontent-length: 9\r\n\r\n{').socket.resetAndDestroy(),
    ]
    for (const end of [...ends, ...ends, ...ends]) {
      const [wire] = await asked(port, 1)
      expect(await ask(new Wire(port))).toBe(0)
      end(wire as Wire)
      await until(() => connections().open === 1)
    }
    kept?.socket.destroy()
    await until(() => connections().open === 0)
    expect(connections().refused).toBe(15)
    await asked(port, 2)
  })

  it('count before TLS has started, and free their place too', async () => {
    const { port, connections } = await listening({ tls, connectionsPerAddress: 1 })
    const greeted = async (): Promise<TLSSocket> => {
      const socket = connectTls({ port, host: '127.0.0.1', ca: tls.cert, servername: 'localhost' })
      onTestFinished(() => void socket.destroy())
      await once(socket, 'secureConnect')
      return socket
    }
    for (let n = 0; n < 5; n++) {
      const socket = await greeted()
      await expect(greeted()).rejects.toThrow()
      socket.destroy()
      await until(() => connections().open === 0)
      const plain = new Wire(port).write('GET / HTTP/1.1\r\n\r\n')
      await plain.closed
      await until(() => connections().open === 0)
    }
    expect(connections().refused).toBe(5)
  })

  it('raise one alert when there are too many, until all are closed', async () => {
    const { app, port } = await listening({ connectionsPerAddress: 2 })
    const raised: EventMap['alert.raised'][] = []
    app.on('alert.raised', (what) => void raised.push(what))
    for (let round = 1; round <= 2; round++) {
      const wires = await asked(port, 2)
      for (let n = 0; n < 3; n++) expect(await ask(new Wire(port))).toBe(0)
      const cleared = app.once('alert.cleared')
      for (const wire of wires) wire.socket.destroy()
      expect((await cleared).alert).toBe('connections:127.0.0.1')
      expect(raised).toHaveLength(round)
    }
    expect(raised[0]?.alert).toBe('connections:127.0.0.1')
    expect(raised[0]?.text).toMatch(/^127\.0\.0\.1 has 2 connections open; .*trustProxy.*connectionsPerAddress\.$/)
  })

  it('of a listed proxy are unbounded', async () => {
    const { port, connections } = await listening({ connectionsPerAddress: 2, trustProxy: ['127.0.0.0/8'] })
    await asked(port, 10)
    expect(connections()).toEqual({ open: 10, refused: 0, closedIdle: 0, closedSlow: 0 })
  })

  it('are bounded even if another proxy is listed', async () => {
    const { port } = await listening({ connectionsPerAddress: 2, trustProxy: ['10.0.0.0/8'] })
    await asked(port, 2)
    expect(await ask(new Wire(port))).toBe(0)
  })

  it.each([0, -1, 1.5, NaN, -Infinity, '5', null])('cannot be bounded by %j', async (connectionsPerAddress) => {
    const app = new Sluice({ store: 'memory:', log: false })
    onTestFinished(() => app.stop())
    const options = { port: 0, connectionsPerAddress } as ListenOptions
    await expect(app.listen(options)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(
        /listen: connectionsPerAddress must be a whole number from 1, or Infinity; got /,
      ) as unknown,
    })
  })
})

/** Connections as a server has them, from the given addresses. */
function arrivals(most: number): {
  arrive: (address: string) => Socket
  heard: Socket[]
  counts: () => ConnectionCounts
} {
  const heard: Socket[] = []
  const server = createServer((socket) => void heard.push(socket))
  const connections = new ConnectionLimiter({
    maxPerAddress: most,
    total: 10_000,
    isTrusted: trustedProxies(['192.0.2.99']),
    emit: () => {},
  })
  connections.guard(server)
  const arrive = (address: string): Socket => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: address })
    server.emit('connection', socket)
    return socket
  }
  return { arrive, heard, counts: () => connections.counts }
}

describe('an address', () => {
  it('does not take the places of another', () => {
    const { arrive, heard, counts } = arrivals(2)
    const first = ['192.0.2.1', '192.0.2.1', '192.0.2.1'].map(arrive)
    expect(first.map(({ destroyed }) => destroyed)).toEqual([false, false, true])
    expect(arrive('192.0.2.2').destroyed).toBe(false)
    expect(heard).toHaveLength(3)
    expect(counts()).toEqual({ open: 3, refused: 1, closedIdle: 0, closedSlow: 0 })
  })

  it('of IPv6 counts as its whole network, and one of IPv4 is the same in each spelling', () => {
    const { arrive } = arrivals(2)
    const gone = (...addresses: string[]): readonly boolean[] => addresses.map((one) => arrive(one).destroyed)
    expect(gone('2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1')).toEqual([false, false, true, false])
    expect(gone('192.0.2.1', '::ffff:192.0.2.1', '::ffff:192.0.2.1')).toEqual([false, false, true])
    expect(gone(...Array.from({ length: 5 }, () => '::ffff:192.0.2.99'))).not.toContain(true)
  })

  it('leaves nothing in memory', async () => {
    const { arrive, counts } = arrivals(2)
    for (let n = 0; n < 100; n++) {
      const sockets = [arrive('192.0.2.1'), arrive('192.0.2.99'), arrive('192.0.2.99'), arrive('192.0.2.99')]
      await Promise.all(sockets.map((socket) => once(socket.destroy(), 'close')))
    }
    expect(counts()).toEqual({ open: 0, refused: 0, closedIdle: 0, closedSlow: 0 })
  })
})

describe('proxies', () => {
  it.each([
    ['10.0.0.0/8', '10.1.2.3', true],
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['10.0.0.0/8', '11.1.2.3', false],
    ['2001:db8::/32', '2001:db8::1', true],
    ['2001:db8::/32', '2001:db9::1', false],
    ['loopback', '127.9.9.9', true],
    ['loopback', '::1', true],
    ['linklocal', 'fe80::1%eth0', true],
    ['uniquelocal', '192.168.1.1', true],
    ['uniquelocal', '192.169.1.1', false],
    ['127.0.0.1', 'unknown', false],
    ['127.0.0.1', undefined, false],
  ])('listed as %s: %s is one: %s', (entry, address, isOne) => {
    expect(trustedProxies(['203.0.113.7', entry])(address)).toBe(isOne)
  })

  it.each(['not an address', '10.0.0.0/33', '', 'localhost'])('cannot be listed as %j', (entry) => {
    expect(() => trustedProxies([entry])).toThrow(
      /CONFIG_INVALID: listen: trustProxy: addresses must hold addresses or networks/,
    )
  })
})
