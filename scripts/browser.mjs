// The browser of the dashboard's tests. On Debian, root installs it if it is missing, once and before any test runs.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const PATHS = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

export function findBrowser() {
  return PATHS.find((path) => path !== undefined && existsSync(path))
}

/** `installBrowser` tries once; without a browser, a test that needs one fails and names the reason. */
export function installBrowser() {
  if (findBrowser() !== undefined || process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return
  console.log('Installing Chromium (apt-get install chromium)')
  const install = ['install', '-y', '--no-install-recommends', 'chromium']
  if (apt(...install) !== 0 && apt('update') === 0) apt(...install)
}

function apt(...args) {
  return spawnSync('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }).status
}
