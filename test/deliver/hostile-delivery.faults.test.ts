// Tests fifty hostile responses at once in a delivering app: each costs one attempt, and together little memory.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { listening } from './listener.ts'

export interface HostileReport {
  /** The peak growth of the resident memory. */
  readonly grown: number
  readonly ends: readonly { readonly status: string; readonly attempts: number }[]
  /** The length of the longest delivery record, as JSON. */
  readonly kept: number
}

const CHILD = fileURLToPath(new URL('hostile-child.ts', import.meta.url))
const EACH = 8
const MEGABYTE = 1024 * 1024
const GIGABYTE = 1024 * MEGABYTE
const OK = 'HTTP/1.1 200 OK\r\n'
/** For all responses together. Reading a single one completely would take several times as much. */
const MEMORY = 96 * MEGABYTE

const QUICK = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

type Attack = (socket: Socket) => void

/** Sends the same bytes repeatedly while they are accepted. */
function pouring(head: string, over: Buffer): Attack {
  return (socket) => {
    socket.once('data', () => {
      socket.write(head)
      const pour = (): void => {
        while (!socket.destroyed && socket.bytesWritten < GIGABYTE) if (!socket.write(over)) return
        socket.end()
      }
      socket.on('drain', pour)
      pour()
    })
  }
}

function saying(head: string, body: Buffer): Attack {
  return (socket) => {
    socket.once('data', () =>
      socket.write(`${OK}${head}content-length: ${body.length}\r\n\r\n`, () => socket.end(body)),
    )
  }
}

const packed = (encoding: string, bomb: Buffer): Attack => saying(`content-encoding: ${encoding}\r\n`, bomb)

const dripping: Attack = (socket) => {
  socket.once('data', () => {
    socket.write(`${OK}content-length: 1000000\r\n\r\n`)
    const drip = setInterval(() => socket.write('x'), 20)
    socket.on('close', () => clearInterval(drip))
  })
}

const ATTACKS: Readonly<Record<string, { readonly attack: Attack; readonly end: 'SUCCESS' | 'FAILED' }>> = {
  // A 200 accepts the batch, however the body continues.
  'a gigabyte': {
    attack: pouring(`${OK}content-length: ${GIGABYTE}\r\n\r\n`, Buffer.alloc(65_536, 'x')),
    end: 'SUCCESS',
  },
  'endless chunks': {
    attack: pouring(`${OK}transfer-encoding: chunked\r\n\r\n`, Buffer.from(`8000\r\n${'x'.repeat(0x80_00)}\r\n`)),
    end: 'SUCCESS',
  },
  'a bomb of gzip': { attack: packed('gzip', gzipSync(Buffer.alloc(64 * MEGABYTE))), end: 'SUCCESS' },
  'a bomb of brotli': { attack: packed('br', brotliCompressSync(Buffer.alloc(64 * MEGABYTE), QUICK)), end: 'SUCCESS' },
  'a flood of headers': {
    attack: pouring(OK, Buffer.from(`x-${'a'.repeat(50)}: ${'b'.repeat(50)}\r\n`.repeat(100))),
    end: 'FAILED',
  },
  'an endless drip': { attack: dripping, end: 'FAILED' },
  'TLS that stalls': { attack: (socket) => void socket.resume(), end: 'FAILED' },
}

interface Attacker {
  readonly port: number
  readonly connections: () => number
}

async function attacker(attack: Attack): Promise<Attacker> {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    attack(socket)
  })
  return { port: await listening(server, '127.0.0.1'), connections: () => connections }
}

async function reported(urls: readonly string[]): Promise<HostileReport> {
  const child = spawn(process.execPath, ['--expose-gc', CHILD, ...urls], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  expect(code).toBe(0)
  return JSON.parse(said) as HostileReport
}

test('each hostile response costs one attempt and ends by its status, and all of them at once take little memory', async () => {
  const friendly = await attacker(saying('', Buffer.from('ok')))
  const names = Object.keys(ATTACKS)
  const attackers = await Promise.all(Object.values(ATTACKS).map(({ attack }) => attacker(attack)))
  const urlOf = (at: number): string =>
    `${names[at]?.startsWith('TLS') === true ? 'https' : 'http'}://127.0.0.1:${attackers[at]?.port}/`
  const urls = Object.values(ATTACKS).flatMap(({ end }, at) =>
    Array.from({ length: EACH }, () => `${end} ${urlOf(at)}`),
  )
  const { grown, ends, kept } = await reported([`http://127.0.0.1:${friendly.port}/`, ...urls])
  const expected = Object.values(ATTACKS).flatMap(({ end }) =>
    Array.from({ length: EACH }, () => ({ status: end, attempts: 1 })),
  )
  expect(ends.map((end, at) => [names[Math.floor(at / EACH)], end])).toEqual(
    expected.map((end, at) => [names[Math.floor(at / EACH)], end]),
  )
  expect(attackers.map(({ connections }) => connections())).toEqual(names.map(() => EACH))
  expect(kept).toBeLessThan(16 * 1024)
  expect(grown).toBeLessThan(MEMORY)
})
