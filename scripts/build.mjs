// Compiles src/ to dist/, only if something that goes into it has changed since the last time.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cache, filesUnder, main, root, run, Stop } from './lib.mjs'
import { setup } from './setup.mjs'

const dist = join(root, 'dist')
const stamp = join(cache, 'build')

export async function build() {
  const inputs = fingerprint()
  if (existsSync(dist) && existsSync(stamp) && readFileSync(stamp, 'utf8') === inputs) return

  // Compiled beside and then moved, so that dist/ is never half written and keeps nothing of deleted sources.
  const next = join(root, `.dist-${process.pid}`)
  try {
    const { code } = await run('tsc', ['-p', 'tsconfig.build.json', '--outDir', next])
    if (code !== 0) throw new Stop('The build failed; the compiler says why above. dist/ is as it was.')
    // SQL and other texts that the code reads at run time.
    cpSync(join(root, 'src'), next, { recursive: true, filter: (path) => extname(path) !== '.ts' })
    rmSync(dist, { recursive: true, force: true })
    renameSync(next, dist)
  } finally {
    rmSync(next, { recursive: true, force: true })
  }
  mkdirSync(cache, { recursive: true })
  writeFileSync(stamp, inputs)
}

function fingerprint() {
  const hash = createHash('sha256')
  const settings = ['tsconfig.json', 'tsconfig.build.json', 'package-lock.json'].map((file) => join(root, file))
  for (const file of [...settings, ...filesUnder('src')]) hash.update(`${file}\0`).update(readFileSync(file))
  return hash.digest('hex')
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    await setup()
    await build()
  })
}
