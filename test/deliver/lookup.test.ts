// Tests lookups with a real name server, including hostile ones: changing, mixed and chained responses.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { createLookup } from '../../src/deliver/http/guard.ts'
import { everywhere, poster } from './listener.ts'

const A = 1
const CNAME = 5
const AAAA = 28
const NXDOMAIN = 3
const HEAD = 12

interface Row {
  readonly type: number
  readonly data: Buffer
}

type Zone = (name: string) => readonly Row[] | undefined

const a = (address: string): Row => ({ type: A, data: Buffer.from(address.split('.').map(Number)) })
const aaaa = (groups: readonly number[]): Row => ({
  type: AAAA,
  data: Buffer.from(groups.flatMap((group) => [group >> 8, group & 255])),
})
const cname = (name: string): Row => ({ type: CNAME, data: named(name) })
const LOOPBACK_V6 = aaaa([0, 0, 0, 0, 0, 0, 0, 1])
const PUBLIC_V6 = aaaa([0x26_06, 0x47_00, 0, 0, 0, 0, 0, 1])

function named(name: string): Buffer {
  return Buffer.concat([
    ...name.split('.').map((part) => Buffer.from(`${String.fromCodePoint(part.length)}${part}`)),
    Buffer.of(0),
  ])
}

/** Responds with everything in the zone except addresses of the other family, regardless of the query. */
async function nameServer(zone: Zone): Promise<{ readonly address: string; readonly asked: string[] }> {
  const asked: string[] = []
  const server = createSocket('udp4')
  server.on('message', (query, from) => {
    const end = query.indexOf(0, HEAD)
    const parts: string[] = []
    for (let at = HEAD; at < end; at += (query[at] ?? 0) + 1)
      parts.push(query.toString('latin1', at + 1, at + 1 + (query[at] ?? 0)))
    const type = query.readUInt16BE(end + 1)
    const name = parts.join('.')
    asked.push(`${name} ${type}`)
    const rows = zone(name)
    const told = (rows ?? []).filter((row) => row.type === type || row.type === CNAME)
    const head = Buffer.from(query.subarray(0, HEAD))
    head.writeUInt16BE(0x81_80 | (rows === undefined ? NXDOMAIN : 0), 2)
    head.writeUInt16BE(told.length, 6)
    head.writeUInt32BE(0, 8)
    const answers = told.map((row) => {
      const fixed = Buffer.alloc(10)
      fixed.writeUInt16BE(row.type, 0)
      fixed.writeUInt16BE(1, 2)
      fixed.writeUInt16BE(row.data.length, 8)
      return Buffer.concat([Buffer.of(0xc0, HEAD), fixed, row.data])
    })
    server.send(Buffer.concat([head, query.subarray(HEAD, end + 5), ...answers]), from.port, from.address)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { address: `127.0.0.1:${server.address().port}`, asked }
}

test('the lookup returns all addresses of both families', async () => {
  const { address } = await nameServer(() => [a('8.8.8.8'), PUBLIC_V6, a('8.8.4.4')])
  expect(await createLookup([address])('x.example.com')).toEqual(['8.8.8.8', '8.8.4.4', '2606:4700::1'])
})

test('one family is enough; a name without addresses is an error', async () => {
  const { address } = await nameServer((name) =>
    name.startsWith('four') ? [a('8.8.8.8')] : name.startsWith('no') ? [] : undefined,
  )
  expect(await createLookup([address])('four.example.com')).toEqual(['8.8.8.8'])
  await expect(createLookup([address])('no.example.com')).rejects.toThrow('ENODATA')
  await expect(createLookup([address])('gone.example.com')).rejects.toThrow('ENOTFOUND')
})

test.each<[string, Zone]>([
  ['an address of ours', () => [a('127.0.0.1')]],
  ['ours in IPv6', () => [LOOPBACK_V6]],
  ['ours in one family, public in the other', () => [a('8.8.8.8'), LOOPBACK_V6]],
  ['ours after many public ones', () => [...Array.from({ length: 20 }, (_, at) => a(`8.8.8.${at}`)), a('127.0.0.1')]],
  ['everything', () => [a('0.0.0.0')]],
])('a name that resolves to %s makes no connection', async (_, zone) => {
  const listener = await everywhere()
  const { address, asked } = await nameServer(zone)
  const { post } = poster({ lookup: createLookup([address]) })
  const end = await post({ url: `https://hook.example.com:${listener.port}/` })
  expect(end).toMatchObject({ kind: 'failed', why: 'dns' })
  expect(asked.toSorted()).toEqual(['hook.example.com 1', 'hook.example.com 28'])
  expect(listener.connections()).toBe(0)
})

test('a name that resolves to an internal name makes no connection', async () => {
  const listener = await everywhere()
  const { address } = await nameServer((name) =>
    name === 'hook.example.com' ? [cname('inside.example.com'), a('127.0.0.1')] : [a('127.0.0.1')],
  )
  const { post } = poster({ lookup: createLookup([address]) })
  const end = await post({ url: `https://hook.example.com:${listener.port}/` })
  expect(end).toMatchObject({ kind: 'failed', why: 'dns' })
  expect(listener.connections()).toBe(0)
})
