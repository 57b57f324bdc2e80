// The set-up of docs/frameworks.md in a real Next.js: `next build` and `next start` with the packed package and the blocks of the
// document. Next.js, with React and its compiler, has more than 300 MB, so this test installs it for itself and not every contributor.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { freePort } from '../free-port.ts'
import { bytesOf, githubHeaders, SECRET } from '../receive/scene.ts'
import { ownFolder } from '../temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

const NEXT = [
  'next@16.4.6',
  'react@19.3.1',
  'react-dom@19.3.1',
  'typescript@7.0.2',
  '@types/react@19.2.8',
  '@types/node@24.19.2',
]

/** What every project of Next.js has. */
const LAYOUT = `export default ({ children }: { children: unknown }) => <html><body>{children as string}</body></html>\n`

/** Long enough that the process is asked to stop while the run is live. */
const SLOW = `run: async ({ sleep }) => { await sleep('2s'); console.log('somebody has pushed') }`

function filesOfTheDocument(): ReadonlyMap<string, string> {
  const text = readFileSync(join(root, 'docs/frameworks.md'), 'utf8')
  const blocks = text.matchAll(/^<!-- test\/http\/frameworks\/next\/(\S+) -->\n\n```ts\n(.*?)^```$/gms)
  return new Map([...blocks].map(([, name = '', code = '']) => [name, code]))
}

async function createProject(): Promise<string> {
  const folder = ownFolder()
  const files = filesOfTheDocument()
  expect([...files.keys()]).toEqual([
    'sluice.config.ts',
    'instrumentation.ts',
    'app/in/[source]/route.ts',
    'next.config.ts',
  ])
  for (const [name, code] of [...files, ['app/layout.tsx', LAYOUT], ['package.json', '{ "private": true }']] as const) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), code.replace(/run: \(\{ log \}\).*(?= \}\))/, SLOW))
  }
  const { stdout } = await run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
  })
  const install = ['install', '--silent', '--no-audit', '--no-fund', '--prefer-offline', `./${stdout.trim()}`, ...NEXT]
  await run('npm', install, { cwd: folder })
  return folder
}

function next(folder: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const program = join(folder, 'node_modules/next/dist/bin/next')
  // What vitest sets for its own process would be wrong for Next.js.
  const { GITHUB_SECRET: _, NODE_ENV: __, ...ours } = process.env
  const settings = { NEXT_TELEMETRY_DISABLED: '1', NEXT_MANUAL_SIG_HANDLE: 'true' }
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...ours, ...settings, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

function textOf(child: ChildProcess): () => string {
  const pieces: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (piece: string) => void pieces.push(piece))
  return () => pieces.join('')
}

test(
  'the documented files build without the secrets; the server receives, and SIGTERM lets the run end',
  { timeout: 600_000 },
  async () => {
    const folder = await createProject()

    const build = next(folder, ['build'])
    const built = textOf(build)
    const [code] = (await once(build, 'exit')) as [number]
    expect(code, built()).toBe(0)
    expect(built()).not.toContain('Warning')

    const port = await freePort()
    const server = next(folder, ['start', '--port', String(port), '--hostname', '127.0.0.1'], { GITHUB_SECRET: SECRET })
    const printed = textOf(server)
    await vi.waitFor(() => expect(printed()).toContain('Ready'), { timeout: 60_000 })
    const body = '{"repository":{"full_name":"octo/app"}}'
    const send = async (delivery: string, secret: string): Promise<number> => {
      const headers = githubHeaders(body, { secret, delivery })
      const init = { method: 'POST', headers, body: bytesOf(body) }
      return (await fetch(`http://127.0.0.1:${port}/in/github`, init)).status
    }
    expect([await send('1', SECRET), await send('1', SECRET), await send('2', 'guessed')], printed()).toEqual([
      202, 202, 401,
    ])

    const exited = once(server, 'exit') as Promise<[number | null, string | null]>
    server.kill('SIGTERM')
    expect(await exited, printed()).toEqual([0, null])
    expect(printed()).toContain('somebody has pushed')
  },
)
