// Tests the networks that an operator denies, in addition to the built-in list.
import { expect, it } from 'vitest'
import { isForbidden } from '../../src/deliver/http/addresses.ts'
import { deniedNetworks } from '../../src/deliver/http/addresses.ts'
import { openStore, Sluice } from '../../src/index.ts'
import { delivery, subscriber } from './subscriber.ts'
import { everywhere, poster } from './listener.ts'

const DENY = ['8.8.8.0/24', '1.1.1.1', '9.9.9.9/8', '2606:4700::/32', '2001:4860:4860::8888']

it.each([
  ['8.8.8.8', true],
  ['8.8.9.8', false],
  ['1.1.1.1', true],
  ['1.1.1.2', false],
  ['9.200.0.1', true],
  ['2606:4700::1111', true],
  ['2607:4700::1111', false],
  ['2001:4860:4860::8888', true],
  ['2001:4860:4860::8844', false],
  // The same addresses as IPv6 writes them.
  ['::ffff:8.8.8.8', true],
  ['64:ff9b::8.8.8.8', true],
  ['64:ff9b::8.8.9.8', false],
])('%s is denied: %s', (address, isDenied) => {
  expect(isForbidden(address)).toBe(false)
  expect(isForbidden(address, { denied: deniedNetworks(DENY) })).toBe(isDenied)
})

it('a name that resolves to a denied address gets the error of a missing name, without a connection', async () => {
  const listener = await everywhere()
  const { post } = poster({ lookup: async () => ['8.8.8.8'], denied: deniedNetworks(DENY) })
  const end = await post({ url: `https://hook.example.com:${listener.port}/` })
  expect(end).toMatchObject({ kind: 'failed', why: 'dns', error: 'The host name resolves to no public address.' })
  expect(await post({ url: 'https://8.8.8.8/' })).toMatchObject({ kind: 'failed', why: 'guarded' })
  expect(listener.connections()).toBe(0)
})

it('registration rejects a denied address, and an existing endpoint gets nothing', async () => {
  const to = await subscriber()
  const store = await openStore('memory:')
  const before = await delivery({ retry: [] }, store)
  await before.endpoint({ url: to.url })
  await before.app.stop()
  const deny = ['127.0.0.0/8']
  const { app, endpoint, send } = await delivery({ retry: [] }, store, undefined, { deny })
  await expect(endpoint({ url: to.url })).rejects.toMatchObject({
    code: 'ENDPOINT_INVALID',
    message: expect.stringContaining('Its address is not allowed.') as string,
  })
  const dead = app.once('run.dead')
  await send(['a'])
  expect((await dead).error).toContain('The destination is not allowed.')
  expect(to.got).toEqual([])
})

it('the denied networks of one app do not affect another app', async () => {
  const to = await subscriber()
  const denies = await delivery({ retry: [] }, 'memory:', undefined, { deny: ['127.0.0.1'] })
  await expect(denies.endpoint({ url: to.url })).rejects.toMatchObject({ code: 'ENDPOINT_INVALID' })
  const allows = await delivery()
  await allows.endpoint({ url: to.url })
  await allows.send(['a'])
  await to.reached(1)
})

it.each([
  ['8.8.8.0/33'],
  ['8.8.8.0/'],
  ['8.8.8/24'],
  ['8.8.8.0/-1'],
  ['8.8.8.0/2 4'],
  ['2606:4700::/129'],
  ['fe80::1%eth0/64'],
  ['example.com'],
  ['0x8.8.8.8/24'],
  [''],
  [8 as never],
])('%j is rejected as a network', (network) => {
  expect(() => new Sluice({ store: 'memory:', delivery: { deny: ['8.8.4.4', network] } })).toThrow(
    /CONFIG_INVALID.*delivery\.deny must be a list of networks.*got/,
  )
})

it('a single string is rejected instead of a list', () => {
  expect(() => new Sluice({ store: 'memory:', delivery: { deny: '8.8.8.0/24' as never } })).toThrow(/delivery\.deny/)
})
