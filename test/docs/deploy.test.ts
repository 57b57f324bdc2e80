// The files of docs/operate/deploy: they run what the package has, and give it the time that it needs.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DEFAULTS } from '../../src/index.ts'
import { parse } from 'yaml'
import { parseDuration, type Duration } from '../../src/model/duration.ts'
import { isKeptOut } from './docker-ignore.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const COMMAND = `node_modules/sluice/${(JSON.parse(read('package.json')) as { bin: { sluice: string } }).bin.sluice.replace('./', '')}`

test.each(['docs/operate/deploy/Containerfile', 'docs/operate/deploy/sluice.service'])(
  '%s runs the command of the package',
  (file) => {
    expect(read(file)).toContain(COMMAND)
  },
)

test('the service has longer to stop than the app takes at most, and a user of its own', () => {
  const unit = read('docs/operate/deploy/sluice.service')
  const most =
    parseDuration(DEFAULTS.shutdownTimeout, 'shutdownTimeout') + parseDuration(DEFAULTS.abortTimeout, 'abortTimeout')
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) * 1_000).toBeGreaterThan(most)
  expect(unit).toMatch(/^DynamicUser=yes$/m)
  expect(unit).toMatch(/^AmbientCapabilities=CAP_NET_BIND_SERVICE$/m)
})

test('the composed app has longer to stop than it takes at most, and no secret has a default', () => {
  const { services } = parse(read('docs/operate/deploy/compose.yaml')) as {
    services: {
      app: {
        stop_grace_period: Duration
        environment: Readonly<Record<string, string>>
        env_file: string
        ports: readonly string[]
        deploy: { replicas: number }
      }
    }
  }
  const { app } = services
  const most =
    parseDuration(DEFAULTS.shutdownTimeout, 'shutdownTimeout') + parseDuration(DEFAULTS.abortTimeout, 'abortTimeout')
  expect(parseDuration(app.stop_grace_period, 'stop_grace_period')).toBeGreaterThan(most)
  expect(app.environment['SLUICE_STORE']).toContain('${POSTGRES_PASSWORD:?')
  // Each process needs a port of its own, and the secrets of the sources, which the image does not have.
  const [, first, last] = /^127\.0\.0\.1:(\d+)-(\d+):8787$/.exec(app.ports[0] ?? '') ?? []
  expect(Number(last) - Number(first) + 1).toBe(app.deploy.replicas)
  expect(app.env_file).toBe('.env')
  expect(app.environment['SLUICE_ENCRYPTION_KEY']).toMatch(/^\$\{SLUICE_ENCRYPTION_KEY:\?/)
})

test('the container runs as a user of its own', () => {
  expect(read('docs/operate/deploy/Containerfile')).toMatch(/^USER 10001$/m)
})

const SECRETS = [
  '.env',
  '.env.production',
  '.npmrc',
  '.netrc',
  '.sluice-encryption-key',
  'sluice.db',
  'sluice.db-wal',
  'sluice.db-lock',
  'sluice.sqlite3',
  'tls.key',
  'tls.pem',
  'server.p12',
  'server.pfx',
  'id_ed25519',
  '.git/config',
  '.aws/credentials',
  '.ssh/config',
  '.docker/config.json',
  'node_modules/pg/package.json',
] as const
const FOLDERS = ['', 'config/', 'data/', 'certs/', 'packages/app/deep/er/'] as const

test.each(SECRETS.flatMap((name) => FOLDERS.map((folder) => folder + name)))(
  'the image does not contain %s',
  (path) => {
    expect(isKeptOut(read('docs/operate/deploy/.dockerignore'), path)).toBe(true)
  },
)

test.each([
  'sluice.config.ts',
  'package.json',
  'package-lock.json',
  'flows/environment.ts',
  'src/keys.ts',
  'src/db.ts',
  'certs/ca.crt',
  'config/production.json',
])('the container takes along %s', (path) => {
  expect(isKeptOut(read('docs/operate/deploy/.dockerignore'), path)).toBe(false)
})

test('the page on deploying names the file', () => {
  expect(read('docs/operate/deploy.md')).toContain('deploy/.dockerignore')
})

// This shows that the function above is right: each line is from Docker's own documentation.
test.each([
  ['*/temp*', 'somedir/temporary.txt', true],
  ['*/temp*', 'temporary.txt', false],
  ['*/*/temp*', 'somedir/subdir/temporary.txt', true],
  ['temp?', 'tempa', true],
  ['temp?', 'temp', false],
  ['**/*.go', 'main.go', true],
  ['**/*.go', 'a/b/main.go', true],
  ['*.key', 'tls.key', true],
  ['*.key', 'certs/tls.key', false],
  ['/foo/bar/', 'foo/bar/baz', true],
  ['node_modules', 'a/node_modules/b', false],
  ['**/node_modules', 'a/node_modules/b', true],
  ['*.md\n!README.md', 'README.md', false],
  ['*.md\n!README*.md\nREADME-secret.md', 'README-secret.md', true],
  ['# secret', '# secret', false],
])('%j and %s', (ignore, path, isOut) => {
  expect(isKeptOut(ignore, path)).toBe(isOut)
})

test('the page says in bold that the API must not be open behind a proxy', () => {
  expect(read('docs/operate/deploy.md')).toMatch(
    /## Behind a proxy\n\n\*\*Leave `admin: \{ open: 'loopback' \}` out\.\*\*/,
  )
})

test("the proxy overwrites the sender's address headers, and does not buffer the stream", () => {
  const conf = read('docs/operate/deploy/nginx.conf')
  expect(conf).toMatch(/proxy_set_header X-Forwarded-For \$remote_addr;/)
  expect(conf).toMatch(/location = \/v1\/stream \{[^}]*proxy_buffering off;/)
})
