// Sets a fresh clone up: installs what package-lock.json lists, only if something else is installed, and checks
// that the pinned Node came with it, so that no other script has to.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter } from 'node:path'
import { bin, pinnedNode, readJson, root, run, Stop } from './lib.mjs'

export async function setup() {
  if (!installed()) {
    console.log('Installing dependencies (npm ci)')
    // The path must not include the folder that is about to be deleted: npm itself must not run on the Node inside it.
    const path = process.env.PATH.split(delimiter).filter((folder) => folder !== bin)
    const env = { ...process.env, PATH: path.join(delimiter) }
    const { code } = await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { env })
    if (code !== 0) throw new Stop(`npm ci failed in ${root} (exit code ${code}); its own message is above.`)
  }
  checkNode()
}

/** npm leaves a copy of the lock file beside the packages. The two are compared entry by entry. */
function installed() {
  if (!existsSync(new URL('../node_modules/.package-lock.json', import.meta.url))) return false
  const present = readJson('node_modules/.package-lock.json').packages
  return Object.entries(readJson('package-lock.json').packages).every(([path, wanted]) => {
    if (path === '') return true
    // Optional packages are for one platform each, and only those for this platform are installed.
    if (present[path] === undefined) return wanted.optional === true
    return present[path].version === wanted.version && present[path].integrity === wanted.integrity
  })
}

function checkNode() {
  const wanted = `v${readJson('package.json').devDependencies.node}`
  const found = spawnSync(pinnedNode, ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? ''
  if (found === wanted) return
  throw new Stop(
    [
      `Node ${wanted} should be at ${pinnedNode}, but ${found === '' ? 'nothing runs there' : `${found} is there`}.`,
      'This project runs on its own Node, which the development dependency `node` puts there in its install script.',
      'That script did not run or did not finish: npm may be set to skip install scripts (`npm config get',
      'ignore-scripts`), or could not reach the registry. To fix it, run',
      '',
      '    npm ci --ignore-scripts=false',
    ].join('\n'),
  )
}
