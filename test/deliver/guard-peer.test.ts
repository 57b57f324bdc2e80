// Tests that the guard checks the peer of each connection, so that a network cannot lead an allowed address
// elsewhere.
import { connect, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { expect, test } from 'vitest'
import type { Dial } from '../../src/deliver/http/guard.ts'
import type { PostResult } from '../../src/deliver/http/post.ts'
import { CERTIFICATE, KEY } from './certificate.ts'
import { closing, listening, poster } from './listener.ts'

const fault = (end: PostResult): string =>
  end.kind === 'failed' ? `${end.why}: ${end.error}` : `${end.kind} ${end.status}`

const PUBLIC = ['93.184.215.14', '2606:4700:4700::1111']

/** Simulates a wrapper of sockets, or a transparent proxy. */
function leadingTo(host: string): Dial & { readonly asked: string[] } {
  const asked: string[] = []
  const dial: Dial = (to) => {
    asked.push(to.host)
    return connect({ host, port: to.port })
  }
  return Object.assign(dial, { asked })
}

interface Trap {
  readonly port: number
  /** Resolves to what the peer received, once the connection is closed. */
  readonly heard: () => Promise<string>
}

async function trap(): Promise<Trap> {
  const came = Promise.withResolvers<Socket>()
  let said = ''
  const server = createServer((socket) => {
    socket.on('data', (bytes) => void (said += bytes.toString('latin1')))
    came.resolve(socket)
  })
  const port = await listening(server)
  return {
    port,
    heard: async () => {
      const socket = await came.promise
      if (!socket.closed) await closing(socket)
      return said
    },
  }
}

test.each([
  ['93.184.215.14', '127.0.0.1'],
  ['93.184.215.14', '::ffff:127.0.0.1'],
  ['2606:4700:4700::1111', '::1'],
  ['93.184.215.14', '0.0.0.0'],
])('D3 a connection to %s with the peer %s sends no byte', async (address, real) => {
  const { port, heard } = await trap()
  const dial = leadingTo(real)
  const { post } = poster({ lookup: async () => [address], dial })
  const end = await post({ url: `https://hook.example.com:${port}/` })
  expect(fault(end)).toBe('guarded: The destination is not allowed.')
  expect(dial.asked).toEqual([address])
  expect(await heard()).toBe('')
})

test('D3 the check also covers an address in the URL', async () => {
  const { port, heard } = await trap()
  const { post } = poster({ dial: leadingTo('127.0.0.1') })
  expect(fault(await post({ url: `https://${PUBLIC[0]}:${port}/` }))).toBe('guarded: The destination is not allowed.')
  expect(await heard()).toBe('')
})

test('an allowed peer is accepted, because only the peer counts', async () => {
  const { port } = await tlsListener()
  const [way, url] = [{ ca: CERTIFICATE, dial: leadingTo('127.0.0.1') }, `https://hook.example.com:${port}/`]
  const posted = async (rules: { readonly allowLoopback: boolean }): Promise<string> =>
    fault(await poster({ ...way, ...rules, lookup: async () => PUBLIC }).post({ url }))
  expect(await posted({ allowLoopback: true })).toBe('answered 200')
  expect(await posted({ allowLoopback: false })).toBe('guarded: The destination is not allowed.')
})

async function tlsListener(): Promise<{ readonly port: number }> {
  const server = createTlsServer({ key: KEY, cert: CERTIFICATE }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'))
  })
  return { port: await listening(server) }
}
