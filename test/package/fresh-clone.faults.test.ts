// `npm pack` in a fresh clone without a build: the package contains everything that it declares.
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ownFolder } from '../temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

test('the package of a fresh clone has the compiled code', async () => {
  const clone = join(ownFolder(), 'clone')
  await run('git', ['clone', '--quiet', '--no-hardlinks', root, clone])
  // The installed packages are those of this folder, without the cache that records builds.
  mkdirSync(join(clone, 'node_modules'))
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== '.cache') symlinkSync(join(root, 'node_modules', name), join(clone, 'node_modules', name))
  }
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--silent'], { cwd: clone, maxBuffer: 2 ** 24 })
  const [pack] = JSON.parse(stdout.slice(stdout.indexOf('['))) as readonly { files: readonly { path: string }[] }[]
  const files = pack?.files.map(({ path }) => path) ?? []
  expect(files).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.ts', 'dist/cli/main.js']))
})
