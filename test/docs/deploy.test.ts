// The files of docs/operate/deploy: what they run is what the package has, and they give it the time it asks for.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DEFAULTS } from '../../src/index.ts'
import { millis } from '../../src/model/duration.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const COMMAND = `node_modules/sluice/${(JSON.parse(read('package.json')) as { bin: { sluice: string } }).bin.sluice.replace('./', '')}`

test.each(['docs/operate/deploy/Containerfile', 'docs/operate/deploy/sluice.service'])(
  '%s runs the command of the package',
  (file) => {
    expect(read(file)).toContain(COMMAND)
  },
)

test('the service is given longer to stop than the app takes at most, and is nobody else’s user', () => {
  const unit = read('docs/operate/deploy/sluice.service')
  const most = millis(DEFAULTS.grace, 'grace') + millis(DEFAULTS.afterAbort, 'afterAbort')
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) * 1_000).toBeGreaterThan(most)
  expect(unit).toMatch(/^DynamicUser=yes$/m)
  expect(unit).toMatch(/^AmbientCapabilities=CAP_NET_BIND_SERVICE$/m)
})

test('the container runs as a user of its own', () => {
  expect(read('docs/operate/deploy/Containerfile')).toMatch(/^USER 10001$/m)
})

test('the container takes along neither secrets nor stores nor packages of the machine that builds it', () => {
  const ignored = read('docs/operate/deploy/.dockerignore').split('\n')
  expect(ignored).toEqual(expect.arrayContaining(['.git', '.env*', 'node_modules', '*.db', '*.db-*', '*.pem']))
  expect(read('docs/operate/deploy.md')).toContain('deploy/.dockerignore')
})

test('that a proxy needs a key first is said in bold', () => {
  expect(read('docs/operate/deploy.md')).toMatch(/## Behind a proxy\n\n\*\*Make a key first\*\*/)
})

test('the proxy overwrites who the sender says he is, and does not buffer the stream', () => {
  const conf = read('docs/operate/deploy/nginx.conf')
  expect(conf).toMatch(/proxy_set_header X-Forwarded-For \$remote_addr;/)
  expect(conf).toMatch(/location = \/v1\/stream \{[^}]*proxy_buffering off;/)
})
