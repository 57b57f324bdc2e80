// `npm run check`: the static checks. Every check runs, so that one run shows all failures.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from './build.mjs'
import { main, run, Stop, timed } from './lib.mjs'
import { setup } from './setup.mjs'

const tool = (command, ...args) => run(command, args, { capture: true })

const checks = {
  'types (tsc)': () => tool('tsc', '-p', 'tsconfig.json'),
  'types of the dashboard (tsc)': () => tool('tsc', '-p', 'dashboard/tsconfig.json'),
  'lint and layers (oxlint)': () => tool('oxlint', '--deny-warnings'),
  'format (oxfmt; `npm run format` mends it)': () => tool('oxfmt', '--check'),
  'unused code (knip)': () => tool('knip', '--no-progress', '--no-config-hints'),
  'package (publint, attw)': checkPackage,
}

export async function check() {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, step]) => {
      const { code, output } = await timed(`  ${name}`, step)
      if (code !== 0) console.log(`${output.trimEnd()}\n  ${name}: FAILED\n`)
      return code
    }),
  )
  return results.filter((code) => code !== 0).length
}

/** `checkPackage` checks the package as its users would get it, not the folder it is made in. */
async function checkPackage() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pack-'))
  try {
    await build()
    const packed = await tool('npm', 'pack', '--silent', '--pack-destination', folder)
    if (packed.code !== 0) return packed
    const tarball = join(folder, readdirSync(folder)[0])
    const published = await tool('publint', tarball, '--strict')
    if (published.code !== 0) return published
    return await tool('attw', tarball, '--profile', 'esm-only', '--no-emoji')
  } catch (error) {
    if (error instanceof Stop) return { code: 1, output: error.message }
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    await setup()
    // The examples import the built package, so types and lint need it.
    await build()
    return (await check()) === 0 ? 0 : 1
  })
}
