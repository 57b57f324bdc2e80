// Tests the endpoint commands on a real file: create, list, show, update, pause, resume, rotate, trigger and delete.
import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { subscriber } from '../deliver/subscriber.ts'
import { folderWith, run, type Ran } from './commands-rig.ts'

const APP = `
import { Sluice } from '${new URL('../../src/index.ts', import.meta.url).href}'
const app = new Sluice({ store: 'sqlite:app.db', admin: { open: 'loopback' }, encryptionKey: '${Buffer.alloc(32, 7).toString('base64')}', delivery: { allowLoopback: true } })
app.delivery('versions', { on: 'version.*', window: { quiet: '1h' } })
export default app
`

test('an endpoint can be created, changed, paused, resumed, rotated and deleted', async () => {
  const folder = folderWith({ 'sluice.config.ts': APP })
  const sluice = (...args: readonly string[]): Promise<Ran> => run(folder, ['endpoints', ...args])
  const added = await sluice('create', 'https://hook.example.com/in', '--types=version.new,version.old', '--name=Ada')
  expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^whsec_\S+\n$/) })
  const listed = await sluice('list', '--json')
  expect(listed).toMatchObject({ code: 0, stderr: '' })
  const { items } = listed.json as { items: { id: string; eventFilter: string[] }[] }
  expect(items).toMatchObject([{ name: 'Ada', eventFilter: ['version.new', 'version.old'], active: true }])
  const id = items[0]?.id ?? ''
  expect((await sluice('list')).stdout).toContain(id)
  expect((await sluice('update', id, '--where={"data.n":{"gt":1}}')).stdout).toBe('Done.\n')
  expect((await sluice('show', id)).stdout).toContain('{"data.n":{"gt":1}}')
  expect((await sluice('update', id, '--where={"data.n"')).stderr).toContain('where')
  expect((await sluice('update', id, '--where=none')).stdout).toBe('Done.\n')
  expect((await sluice('deliveries', id)).stderr).toBe('There are no deliveries to this endpoint yet.\n')
  expect((await sluice('pause', id)).stdout).toBe('Done.\n')
  expect((await sluice('list')).stdout).toContain('paused')
  expect((await sluice('resume', id)).stdout).toBe('Done.\n')
  expect(await sluice('enable', id)).toMatchObject({ code: 2, stderr: expect.stringContaining('--from=backlog') })
  expect((await sluice('enable', id, '--from=backlog')).stdout).toBe('Done.\n')
  expect(await sluice('enable', id, '--from=now')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
  expect(await sluice('enable', id, '--from=now', '--yes')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('CONFLICT'),
  })
  expect((await sluice('rotate-secret', id)).stdout).toMatch(/^whsec_/)
  expect((await sluice('replay', id)).stdout).toBe('0 batches will be retried.\n')
  expect((await sluice('token', 'create', id)).stdout).toMatch(/^slt_[\w-]{12}_[\w-]{43}\n$/)
  expect((await sluice('token', 'revoke', id)).stdout).toBe('Done.\n')
  expect((await sluice('token', 'revoke', id)).code).toBe(3)
  expect((await sluice('trigger')).stdout).toBe('0 batches due.\n')
  expect((await sluice('delete', id, '--yes')).stdout).toBe('Done. 0 events dropped.\n')
  expect((await sluice('list')).stderr).toBe('There are no endpoints.\n')
  expect((await sluice('create', 'http://10.0.0.1/')).stderr).toContain('url')
})

test('the subscriber of the seed can be set up with the command line alone', async () => {
  const to = await subscriber()
  const folder = folderWith({ 'sluice.config.ts': APP, headers: 'authorization: Bearer a:b\n\nx-team: a\n' })
  const sluice = (...args: readonly string[]): Promise<Ran> => run(folder, ['endpoints', ...args])
  const secret = 'shared-secret-key'
  const signing = '--signing=hmac:X-Webhook-Signature:hex'
  const said = [signing, '--form=events', '--header=@headers', '--header=x-old: 1', '--description=Of the seed']
  const added = await run(folder, ['endpoints', 'create', to.url, '--secret-file=-', ...said], { input: `${secret}\n` })
  expect(added).toMatchObject({ code: 0, stdout: 'Done.\n' })
  const id = /The endpoint is (\S+)\./.exec(added.stderr)?.[1] ?? ''
  expect((await sluice('test', id)).code).toBe(0)
  const [{ headers, body } = { headers: {}, body: '' }] = to.got
  expect(headers).toMatchObject({
    'x-webhook-signature': createHmac('sha256', secret).update(body).digest('hex'),
    authorization: 'Bearer a:b',
    'x-team': 'a',
    'x-old': '1',
  })
  expect(JSON.parse(body)).toMatchObject({ events: [{ eventType: 'endpoint.test' }] })

  expect(await sluice('update', id)).toMatchObject({ code: 2, stderr: expect.stringContaining('at least one option') })
  expect(await sluice('update', id, '--per=10s')).toMatchObject({ code: 2, stderr: expect.stringContaining('rate') })
  const other = `${to.url}/other`
  const change = [
    '--types=version.new',
    '--header=x-old:',
    '--rate=5',
    '--name=Ada',
    '--signing=hmac:X-Sig:base64:sha256=',
  ]
  expect(await sluice('update', id, other, ...change)).toMatchObject({ code: 0, stdout: 'Done.\n' })
  const shown = await sluice('show', id)
  expect(shown.stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual(
    expect.arrayContaining([
      ['url', other],
      ['name', 'Ada'],
      ['description', 'Of the seed'],
      ['wants', 'version.new'],
      ['is', 'active'],
      ['signing', 'hmac:X-Sig:base64:sha256='],
      ['form', 'events'],
      ['headers', 'authorization x-team'],
      ['rate', '5 in 1s'],
    ]),
  )
  expect(shown.stdout).not.toMatch(/Bearer|shared-secret/)
  expect(await sluice('update', id, '--rate=none')).toMatchObject({ code: 0 })
  expect((await sluice('show', id, '--json')).json).toMatchObject({ rate: null, name: 'Ada' })
  expect(await sluice('create', to.url, '--signing=hmac:X-Sig')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('signing.encoding'),
  })
  expect(await sluice('rotate-secret', id, '--secret-file=headers', '--force')).toMatchObject({ stdout: 'Done.\n' })
  expect((await sluice('rotate-secret', id)).stdout).toMatch(/^whsec_\S+\n$/)
  expect((await sluice('show', 'ep_nothing')).code).toBe(3)
})

test('a test event prints its result and sets the exit code', async () => {
  const to = await subscriber({ status: 200, body: 'hello' }, { status: 500 }, { status: 500 })
  const folder = folderWith({ 'sluice.config.ts': APP })
  const sluice = (...args: readonly string[]): Promise<Ran> => run(folder, ['endpoints', ...args])
  await sluice('create', to.url)
  const { items } = (await sluice('list', '--json')).json as { items: { id: string }[] }
  const id = items[0]?.id ?? ''
  const good = await sluice('test', id)
  expect(good).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Delivered: 200 after \d+ ms\.\n$/),
    stderr: 'hello\n',
  })
  expect(await sluice('test', id)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('The endpoint returned 500.'),
  })
  const told = await sluice('test', id, '--json')
  expect(told.code).toBe(1)
  expect(told.json).toMatchObject({ delivered: false, status: 500 })
  expect((await sluice('test', 'ep_nothing')).code).toBe(3)
})

function echo({ body }: { readonly body: string }): { readonly status: number; readonly body: string } {
  const { data } = JSON.parse(body) as { data: { challenge: string } }
  return { status: 200, body: JSON.stringify({ challenge: data.challenge }) }
}

test('an endpoint can be proven by a challenge, at once or later', async () => {
  const to = await subscriber({ status: 404 }, { status: 404 }, echo)
  const folder = folderWith({
    'sluice.config.ts': APP.replace('allowLoopback: true', "allowLoopback: true, proof: 'challenge'"),
  })
  const sluice = (...args: readonly string[]): Promise<Ran> => run(folder, ['endpoints', ...args])
  const added = await sluice('create', to.url, '--json')
  const { id } = added.json as { id: string }
  expect(added.json).toMatchObject({ proof: 'pending', proofError: 'The endpoint returned 404.' })
  expect((await sluice('list')).stdout).toContain('unproven')
  expect(await sluice('prove', id)).toMatchObject({
    code: 1,
    stdout: 'The endpoint did not prove its ownership: The endpoint returned 404.\n',
  })
  expect(await sluice('prove', id)).toMatchObject({ code: 0, stdout: 'The endpoint has proven its ownership.\n' })
  expect((await sluice('list')).stdout).not.toContain('unproven')
})

test('a transformation can be set, shown, tried, set back and removed', async () => {
  const to = await subscriber()
  const folder = folderWith({
    'sluice.config.ts': APP,
    'one.js': 'export default ([{ data }]) => ({ body: { n: data.n + 1 } })\n',
    'two.js': 'export default (events) => {\n  console.log(events.length)\n  return events[0].data.no.way\n}\n',
  })
  const sluice = (...args: readonly string[]): Promise<Ran> => run(folder, ['endpoints', ...args])
  const added = await sluice('create', to.url)
  const id = /The endpoint is (\S+)\./.exec(added.stderr)?.[1] ?? ''
  const transform = (act: string, ...args: readonly string[]): Promise<Ran> => sluice('transform', act, id, ...args)
  expect((await transform('show')).stderr).toBe('There is no such transformation.\n')
  expect(await transform('set')).toMatchObject({ code: 2, stderr: expect.stringContaining('Pass a file') })
  const data = ['--type=order.paid', '--data={"n":1}']
  expect(await transform('test', 'one.js', ...data)).toMatchObject({ code: 0, stdout: '{"n":2}\n' })
  expect((await transform('set', 'one.js')).stdout).toBe('Done. Version 1 is used from the next attempt on.\n')
  expect((await sluice('show', id)).stdout).toContain('version 1')
  expect((await transform('test', ...data)).stderr).toMatch(/^7 bytes of application\/json after [\d.]+ ms\.\n$/)
  expect(await transform('test', 'two.js', ...data)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^Failed after [\d.]+ ms: transform-failed: TypeError: .* \(line 3\)\n$/),
    stderr: 'console: 1\n',
  })
  expect((await transform('test', '--data={')).stderr).toContain('--type')
  await transform('set', 'two.js')
  expect((await transform('set', '--version=1')).stdout).toContain('Version 3')
  expect((await transform('versions')).stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 2))).toEqual(
    expect.arrayContaining([
      ['3', 'used'],
      ['2', expect.any(String)],
    ]),
  )
  expect((await transform('show', '--version=2')).stdout).toContain('return events[0].data.no.way')
  expect((await transform('remove')).stdout).toBe('Done.\n')
  expect((await transform('remove')).code).toBe(3)
})

test('an endpoint whose event filter is misspelled is created with a note', async () => {
  const folder = folderWith({ 'sluice.config.ts': APP })
  const added = await run(folder, ['endpoints', 'create', 'https://hook.example.com/in', '--types=verion.*'])
  expect(added).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(
      'No delivery of this app takes verion.*, so it sends nothing to the endpoint: versions',
    ),
  })
})

test('an endpoint of an app without a delivery is created with a note that nothing will be sent', async () => {
  const folder = folderWith({ 'sluice.config.ts': APP.replace(/^app\.delivery.*\n/m, '') })
  const added = await run(folder, ['endpoints', 'create', 'https://hook.example.com/in'])
  expect(added).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('This app has no delivery, so it sends nothing'),
  })
})
