// The documents match the code: a difference in either direction fails a test.
import { execFile, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DEFAULTS, type SluiceOptions } from '../../src/index.ts'
import { ERRORS } from '../../src/errors.ts'
import { LANE_TRANSITIONS } from '../../src/model/lane-states.ts'
import { createFieldRedactor } from '../../src/observe/log/fields.ts'

const root = new URL('../../', import.meta.url)
const read = (file: string): Promise<string> => readFile(new URL(file, root), 'utf8')

describe('documents', () => {
  it('docs/errors.md lists every code with its status and fix, and no other', async () => {
    const rows = [...(await read('docs/errors.md')).matchAll(/^\| `(\w+)` +\| +(\d+) +\| .* \| (.*?) +\|$/gm)]
    const listed = Object.fromEntries(rows.map(([, code, status, fix]) => [code, { status: Number(status), fix }]))
    expect(listed).toEqual(ERRORS)
  })

  it('docs/errors.md names every error class that is not a SluiceError', async () => {
    const files = await readdir(new URL('src/', root), { recursive: true })
    for (const file of files.filter((one) => one.endsWith('.ts') && !one.startsWith('demo'))) {
      const own = [...(await read(`src/${file}`)).matchAll(/class (\w+) extends Error\b/g)].map(([, name]) => name)
      for (const name of own) expect(await read('docs/errors.md'), file).toContain(`\`${name}\``)
    }
    expect(await read('docs/errors.md')).toContain('`AbortError`')
  })

  it('docs/options.md lists every option of an app, and no other', async () => {
    const options = {
      admin: true,
      dashboard: true,
      store: true,
      clock: true,
      lease: true,
      heartbeat: true,
      maxConcurrentRuns: true,
      poll: true,
      shutdownTimeout: true,
      dedupe: true,
      keep: true,
      lateAfter: true,
      log: true,
      encryptionKey: true,
      addressRate: true,
      openMetrics: true,
      traces: true,
      delivery: true,
      process: true,
    } satisfies Record<keyof SluiceOptions, true>
    const rows = [...(await read('docs/options.md')).matchAll(/^\| `(\w+)` .*\| (.*?) +\|$/gm)]
    expect(rows.map(([, name = '']) => name).toSorted()).toEqual(Object.keys(options).toSorted())
    const defaults: Readonly<Record<string, unknown>> = DEFAULTS
    for (const [, name = '', told = ''] of rows)
      if (/^`'.*'`$/.test(told)) expect([name, told]).toEqual([name, `\`'${String(defaults[name])}'\``])
  })

  it('docs/flows.md lists what the log hides, and the log hides it', async () => {
    const table = (await read('docs/flows.md')).split('## The log')[1] ?? ''
    const [hidden = '', shown = ''] = [...table.matchAll(/^\| names +\| (.*?) +\| (.*?) +\|$/gm)][0]?.slice(1) ?? []
    expect(namesIn(hidden).length).toBeGreaterThan(5)
    expect(namesIn(shown).length).toBeGreaterThan(3)
    for (const name of namesIn(hidden))
      expect([name, createFieldRedactor()({ [name]: 'x' })]).toEqual([name, { [name]: '[redacted]' }])
    for (const name of namesIn(shown))
      expect([name, createFieldRedactor()({ [name]: 'x' })]).toEqual([name, { [name]: 'x' }])
  })

  it('the package contains everything that the README links to', async () => {
    const { files } = JSON.parse(await read('package.json')) as { files: readonly string[] }
    const links = [...(await read('README.md')).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link]) => link ?? '')
    const isPacked = (link: string): boolean =>
      files.some((one) => link === one || link.startsWith(`${one}/`) || (link.endsWith('/') && one.startsWith(link)))
    expect(links.filter((link) => !isPacked(link))).toEqual([])
  })

  it('ARCHITECTURE.md lists every state of a lane, and no other', async () => {
    const table = (await read('ARCHITECTURE.md')).split('## The states of a lane')[1]?.split('## Stores')[0] ?? ''
    const listed = [...table.matchAll(/^\| (\w+) +\|/gm)].map(([, state]) => state).filter((state) => state !== 'state')
    const states = new Set(Object.values(LANE_TRANSITIONS).flatMap((arrows) => Object.keys(arrows)))
    expect(new Set(listed)).toEqual(states)
  })

  it('the contract has as many members as ARCHITECTURE.md says', async () => {
    const members = async (file: string, name: string): Promise<number> => {
      const body = (await read(file)).split(`export interface ${name} {`)[1]?.split('\n}')[0] ?? ''
      return [...body.matchAll(/^ {2}\w+[(<]/gm)].length
    }
    const work = await members('src/store/contract/work.ts', 'WorkStore')
    const records = await members('src/store/contract/records.ts', 'RecordStore')
    expect(await read('ARCHITECTURE.md')).toContain(`${work} members for work and ${records} for records`)
    expect(Math.max(work, records)).toBeLessThanOrEqual(25)
  })

  it.each([
    ['docs/flows.md', 'examples/rank-tasks.ts'],
    ['docs/flows.md', 'examples/typed-events.ts'],
    ['docs/receiving.md', 'examples/receive-github.ts'],
    ['docs/delivering.md', 'examples/verify-delivery.ts'],
  ])('the example of %s, %s, prints what the document says', async (document, example) => {
    expect(await read(document)).toContain(`It prints:\n\n\`\`\`\n${await printed(example)}\`\`\``)
  })

  it('the example of the README builds after the pushes that it receives', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-quick-start-'))
    const file = fileURLToPath(new URL('examples/quick-start.ts', root))
    const env = { ...process.env, PORT: '0', GITHUB_SECRET: 'quick' }
    const child = spawn(process.execPath, ['--no-warnings', file], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    })
    let built = 0
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^GitHub posts to (\S+)$/.exec(line)?.[1]
      if (url !== undefined) for (const delivery of ['one', 'two']) expect(await push(url, delivery)).toBe(202)
      built += Number(/^build octo\/app after (\d+) pushes$/.exec(line)?.[1] ?? 0)
      if (built === 2) return
    }
    throw new Error('The example ended before it had built both pushes.')
  })

  it('links of the documents lead to existing files', async () => {
    for (const file of [
      'README.md',
      'ARCHITECTURE.md',
      'CONTRIBUTING.md',
      'SECURITY.md',
      'bench/README.md',
      'docs/flows.md',
      'docs/postgres.md',
      'docs/limits.md',
      'docs/delivering.md',
      'docs/receiving.md',
      'docs/api.md',
      'docs/cli.md',
      'docs/operate/deploy.md',
      'docs/operate/monitor.md',
      'docs/operate/alerts.md',
      'docs/operate/backup.md',
      'docs/operate/traces.md',
      'docs/operate/upgrade.md',
      'docs/testing.md',
    ]) {
      const links = [...(await read(file)).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link]) => link ?? '')
      for (const link of links) {
        const target = new URL(link, new URL(file, root))
        await expect(stat(target), `${file} → ${link}`).resolves.toBeDefined()
      }
    }
  })
})

async function push(url: string, delivery: string): Promise<number> {
  const body = JSON.stringify({ repository: { full_name: 'octo/app' } })
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': delivery,
    'x-hub-signature-256': `sha256=${createHmac('sha256', 'quick').update(body).digest('hex')}`,
  }
  return (await fetch(url, { method: 'POST', headers, body })).status
}

function namesIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '')
}

async function printed(file: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(new URL(file, root))])
  return stdout
}
