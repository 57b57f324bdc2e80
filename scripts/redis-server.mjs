// The Redis server of the tests. On Debian, root installs it if it is missing, once and before any test runs.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const NAMES = ['redis-server', 'valkey-server']
/** Scripts name their flags since 7.0. */
const OLDEST = 7

export function findRedisServer() {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/local/bin', '/opt/homebrew/bin']
  const installed = folders
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .filter((path) => existsSync(path))
  return [process.env.REDIS_SERVER, ...installed].find((path) => path !== undefined && isNewEnough(path))
}

function isNewEnough(path) {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return Number(/v=(\d+)/.exec(stdout ?? '')?.[1] ?? 0) >= OLDEST
}

/** `installRedisServer` tries once; without a server, a test that needs one fails and names the reason. */
export function installRedisServer() {
  if (findRedisServer() !== undefined || process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return
  console.log('Installing Redis (apt-get install redis-server)')
  const install = ['install', '-y', '--no-install-recommends', 'redis-server']
  if (apt(...install) !== 0 && apt('update') === 0) apt(...install)
}

/** The Debian package would start a server at once; the tests start their own. */
function apt(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  return spawnSync('apt-get', args, { env }).status
}
