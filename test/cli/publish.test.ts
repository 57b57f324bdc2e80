// `sluice publish`, curl and Python publish events that run; and each documented example makes a request that works.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { folderWith, run } from './commands-rig.ts'

const SRC = new URL('../../src/index.ts', import.meta.url).href
const CONFIG = `
import { Sluice } from '${SRC}'
export default new Sluice({ store: 'sqlite:app.db', log: false }).flow('f', { on: 'order.*', run: () => {} })
`

interface Served {
  readonly app: Sluice
  readonly url: string
  readonly key: string
  /** The data of all runs, once there are this many. */
  readonly ran: (n: number) => Promise<readonly unknown[]>
}

async function served(): Promise<Served> {
  const data: unknown[] = []
  const app = new Sluice({ store: 'memory:', log: false }).flow('f', {
    on: 'order.paid',
    run: ({ events }) => void data.push(...events.map((event) => event.data)),
  })
  await app.admin.keys.create({ name: 'ada', role: 'operate' })
  const { secret: key } = await app.admin.keys.create({ name: 'shop', role: 'publish' })
  await app.start()
  const { url } = await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.stop())
  const ran = async (n: number): Promise<readonly unknown[]> => {
    await expect.poll(() => data.length).toBe(n)
    return data
  }
  return { app, url, key, ran }
}

async function examples(): Promise<Readonly<Record<'sh' | 'python' | 'go', string>>> {
  const text =
    (await readFile(new URL('../../docs/api.md', import.meta.url), 'utf8')).split('## Publish events')[1] ?? ''
  const block = (language: string): string => text.split(`\`\`\`${language}\n`)[1]?.split('```')[0] ?? ''
  return { sh: block('sh'), python: block('python'), go: block('go') }
}

interface ExampleRequest {
  readonly path: string
  readonly body: string
  readonly headers: readonly string[]
}

/** Reads the request out of the text of an example, so that it is checked without the program. */
function requestIn(text: string, body: RegExp): ExampleRequest {
  return {
    path: /\/v1\/\w+/.exec(text)?.[0] ?? '',
    body: body.exec(text)?.[1] ?? '',
    headers: [...text.toLowerCase().matchAll(/authorization\W+bearer |content-type\W+application\/json/g)].map(
      ([one]) => one.split(/\W*[:,]/)[0] ?? '',
    ),
  }
}

async function program(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const child = spawn(command, [...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => void (text += more))
  await once(child, 'close')
  return text
}

const isInstalled = (command: string): boolean => spawnSync(command, ['--version']).status === 0

describe('the examples of docs/api.md', () => {
  test('make requests that are stored and run', async () => {
    const { url, key, ran } = await served()
    const { sh, python, go } = await examples()
    const requests = [
      requestIn(sh, /-d '(.+)'/),
      requestIn(python, /event = (.+)/),
      requestIn(go, /NewReader\(`(.+)`\)/),
    ]
    for (const { path, body, headers } of requests) {
      expect([path, headers]).toEqual(['/v1/events', ['authorization', 'content-type']])
      const how = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const response = await fetch(url + path, { method: 'POST', headers: how, body })
      expect(response.status).toBe(202)
    }
    expect(await ran(3)).toEqual([{ total: 4200 }, { total: 4200 }, { total: 4200 }])
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const long = JSON.stringify({ type: 'order.paid', data: 'x'.repeat(1_100_000) })
    expect((await fetch(`${url}/v1/events`, { method: 'POST', headers, body: long })).status).toBe(413)
  })

  test.runIf(isInstalled('curl'))('curl publishes; a repeated call runs once', async () => {
    const { url, key, ran } = await served()
    const { sh } = await examples()
    const script = sh.split('\n').slice(1).join('\n').replace('http://localhost:8787', url)
    const publish = (): Promise<string> => program('sh', ['-c', script], { SLUICE_KEY: key })
    expect(JSON.parse(await publish())).toEqual({ events: [{ id: 'order-1', kind: 'stored' }] })
    expect(JSON.parse(await publish())).toEqual({ events: [{ id: 'order-1', kind: 'repeated', of: 'order-1' }] })
    expect(await ran(1)).toEqual([{ total: 4200 }])
  })

  test.runIf(isInstalled('python3'))('Python publishes with its standard library only', async () => {
    const { url, key, ran } = await served()
    const { python } = await examples()
    expect(await program('python3', ['-c', python], { SLUICE_KEY: key, SLUICE_URL: url })).toContain("'kind': 'stored'")
    expect(await ran(1)).toEqual([{ total: 4200 }])
  })
})

function call(server: Served, args: readonly string[], input = ''): ReturnType<typeof run> {
  return run(folderWith({}), ['publish', ...args], { env: { SLUICE_URL: server.url, SLUICE_KEY: server.key }, input })
}

describe('sluice publish', () => {
  test('publishes one event, with a key of the role publish; a repeated id runs once', async () => {
    const server = await served()
    const args = ['order.paid', '--data={"n": 12345678901234567890}', '--id=a', '--subject=ada']
    expect(await call(server, args)).toMatchObject({ code: 0, stdout: 'a stored\n' })
    expect(await call(server, args)).toMatchObject({ code: 0, stdout: 'a repeated of a\n' })
    expect(await call(server, ['order.paid', '--id=a', '--data=1', '--json'])).toMatchObject({
      code: 1,
      json: { id: 'a', kind: 'conflict', of: 'a' },
    })
    await server.ran(1)
    expect((await server.app.admin.events.show('a'))?.body).toEqual({
      kind: 'text',
      text: '{"n": 12345678901234567890}',
    })
  })

  test('publishes each line of standard input', async () => {
    const server = await served()
    const lines = Array.from({ length: 1_200 }, (_, n) => JSON.stringify({ type: 'order.paid', id: `e${n}`, data: n }))
    const { code, stdout } = await call(server, [], lines.join('\n'))
    expect([code, stdout.split('\n').length, stdout.split('\n')[0]]).toEqual([0, 1_201, 'e0 stored'])
    expect(await server.ran(1_200)).toContain(1_199)
  })

  test('a conflict among the lines exits with 1, and the other lines are stored', async () => {
    const server = await served()
    await call(server, ['order.paid', '--id=a', '--data=1'])
    const lines = [
      { type: 'order.paid', id: 'a', data: 2 },
      { type: 'order.paid', id: 'b', data: 3 },
    ]
    const result = await call(server, [], lines.map((line) => JSON.stringify(line)).join('\n'))
    expect(result).toMatchObject({ code: 1, stdout: 'a conflict of a\nb stored\n' })
  })

  test('rejects what is no event, with the field and an exit code', async () => {
    const server = await served()
    expect(await call(server, ['order.paid', '--data=text'])).toMatchObject({ code: 2 })
    expect(await call(server, ['--id=a'])).toMatchObject({ code: 2 })
    const { code, stderr } = await call(server, [], '{"data":1}')
    expect([code, stderr]).toEqual([2, expect.stringContaining('body: 0: type')])
    expect(await call(server, [], 'no json')).toMatchObject({ code: 2 })
    const { secret } = await server.app.admin.keys.create({ name: 'eve', role: 'read' })
    expect(await call({ ...server, key: secret }, ['order.paid'])).toMatchObject({ code: 4 })
    expect((await server.app.admin.events.list()).items).toEqual([])
  })

  test('without a server, it writes to the store of the app', async () => {
    const folder = folderWith({ 'sluice.config.ts': CONFIG })
    expect(await run(folder, ['publish', 'order.paid', '--id=a'])).toMatchObject({ code: 0, stdout: 'a stored\n' })
    expect((await run(folder, ['events', 'show', 'a', '--json'])).json).toMatchObject({ id: 'a', type: 'order.paid' })
  })
})
