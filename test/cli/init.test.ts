// `sluice init` as a newcomer runs it: in an empty folder of any package type, then the test it wrote, then the app.
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { Program } from './program.ts'
import { ownFolder } from '../temporary-folder.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A folder in which this package is installed. */
function projectOf(type: string | undefined): string {
  const folder = ownFolder()
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules', 'sluice'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'newcomer', type }))
  return folder
}

it.each([undefined, 'commonjs', 'module'])(
  'writes an app that starts and a test that passes, with type %s',
  async (type) => {
    const folder = projectOf(type)
    const init = new Program(folder, ['init'])
    expect(await init.exit).toBe(0)
    expect(init.text).toContain('npx sluice dev')
    // The variables of a test runner around this one would change what the inner one prints.
    const { NODE_TEST_CONTEXT: _, GITHUB_SECRET: __, ...env } = process.env
    const test = spawnSync(process.execPath, ['--test'], { cwd: folder, env, encoding: 'utf8' })
    expect([test.status, test.stdout]).toEqual([0, expect.stringMatching(/pass 1\n/)])
    const app = new Program(folder, ['start', '--port=0'])
    const url = await app.said(/listens on (http:\S+)/)
    // `send` reads the secret from the .env that init wrote.
    const send = new Program(folder, ['send', 'github', '--type=push', `--url=${url}`])
    expect([await send.exit, send.text]).toEqual([0, expect.stringMatching(/^202/)])
    expect(await app.stop()).toBe(0)
  },
)

it('keeps files that exist, and writes a secret that only the owner can read', async () => {
  const folder = projectOf('module')
  writeFileSync(join(folder, 'sluice.config.ts'), 'mine')
  writeFileSync(join(folder, '.gitignore'), 'dist\n')
  const init = new Program(folder, ['init'])
  expect(await init.exit).toBe(0)
  expect(init.text).toMatch(/^kept +sluice\.config\.ts$/m)
  expect(init.text).toContain('Add to .gitignore: node_modules, .env')
  expect(readFileSync(join(folder, 'sluice.config.ts'), 'utf8')).toBe('mine')
  expect(readFileSync(join(folder, '.env'), 'utf8')).toMatch(/^GITHUB_SECRET=\S{20,}$/m)
  expect(readFileSync(join(folder, '.env.example'), 'utf8')).toMatch(/^GITHUB_SECRET=$/m)
  expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600)
})

it('loads a configuration with import and export, and the files it imports, in a package of CommonJS', async () => {
  const folder = projectOf('commonjs')
  writeFileSync(join(folder, 'name.js'), "export const name = 'imported'\n")
  writeFileSync(
    join(folder, 'sluice.config.ts'),
    `import { Sluice } from 'sluice'
import { name } from './name.js'
const path: string = '/name'
export default new Sluice({ store: 'memory:', log: false }).route('GET', path, () => new Response(name + process.env['SUFFIX']))
`,
  )
  writeFileSync(join(folder, '.env'), 'SUFFIX=!\n')
  const app = new Program(folder, ['start', '--port=0'])
  const url = await app.said(/listens on (http:\S+)/)
  expect(await (await fetch(`${url}/name`)).text()).toBe('imported!')
  expect(await app.stop()).toBe(0)
})

it('prefers variables that are set over those of the file', async () => {
  const folder = projectOf('module')
  writeFileSync(
    join(folder, 'sluice.config.ts'),
    `import { Sluice } from 'sluice'
export default new Sluice({ store: 'memory:', log: false }).route('GET', '/name', () => new Response(process.env['NAME']))
`,
  )
  writeFileSync(join(folder, '.env'), 'NAME=file\n')
  const app = new Program(folder, ['start', '--port=0'], { NAME: 'set' })
  const url = await app.said(/listens on (http:\S+)/)
  expect(await (await fetch(`${url}/name`)).text()).toBe('set')
  expect(await app.stop()).toBe(0)
})
