// `sluice start`, `sluice dev` and `sluice version`: the app of the configuration, run; and which release runs it.
import { readFileSync } from 'node:fs'
import type { ListenOptions } from '../../http/server.ts'
import type { Given, Options } from '../arguments.ts'
import { misused, type Command, type Scene } from '../command.ts'
import { configFile } from '../config-file.ts'
import { dev as runAnew } from '../dev.ts'
import { EXIT, type Exit } from '../exit.ts'
import { start as runOnce } from '../start.ts'

const LISTEN: Options = {
  port: { type: 'string', value: 'N', says: '8787, or PORT of the environment; 0 for any that is free' },
  host: { type: 'string', value: 'HOST', says: '127.0.0.1; 0.0.0.0 lets the world in' },
  'trust-proxy': {
    type: 'string',
    value: 'NET',
    multiple: true,
    says: 'a proxy whose forwarded headers are believed, as 10.0.0.0/8; once for each of them',
  },
}

const ALLOW_LOOPBACK = 'allow-loopback'
/** Of every command that delivers. */
export const DELIVERING: Options = {
  [ALLOW_LOOPBACK]: { type: 'boolean', says: 'deliver to this machine, if delivery.allowLoopback says so too' },
}

export function forcedBy(given: Given): { readonly allowLoopback: boolean } {
  return { allowLoopback: given.is(ALLOW_LOOPBACK) }
}

export const start: Command = {
  words: 'start',
  says: 'run the app; options go before what the file exports as listen: { port, host, tls, trustProxy }',
  options: { ...LISTEN, ...DELIVERING },
  isLasting: true,
  run: async (scene) => {
    const { given, where, out } = scene
    const wrong = wrongPort(scene)
    if (wrong !== undefined) return wrong
    const file = configFile(where.folder, where.config)
    const how = { listen: listenOf(given), ...forcedBy(given) }
    await runOnce({ file, ...how, say: (line) => out.line(line), signal: stopSignal() })
    return EXIT.done
  },
}

export const dev: Command = {
  words: 'dev',
  says: 'run the app, and again whenever a file changes',
  options: LISTEN,
  isLasting: true,
  run: async (scene) => {
    const { given, where, out } = scene
    const wrong = wrongPort(scene)
    if (wrong !== undefined) return wrong
    const proxies = given.all('trust-proxy').map((net) => `--trust-proxy=${net}`)
    const texts = Object.entries({ ...given.texts(['port', 'host']), config: configFile(where.folder, where.config) })
    await runAnew({
      args: [...texts.map(([name, value]) => `--${name}=${value}`), ...proxies, `--${ALLOW_LOOPBACK}`],
      main: process.argv[1] ?? '',
      folder: where.folder,
      env: where.env,
      say: (line) => out.line(line),
      signal: stopSignal(),
    })
    return EXIT.done
  },
}

export const version: Command = {
  words: 'version',
  says: 'say which one this is',
  run: ({ out }) => {
    const url = new URL('../../../package.json', import.meta.url)
    const { version: number } = JSON.parse(readFileSync(url, 'utf8')) as { readonly version: string }
    if (out.asJson) out.answer({ version: number })
    else out.line(number)
    return Promise.resolve(EXIT.done)
  },
}

/** `--port=$PORT` where there is no PORT is no number, and not any port that is free. */
function wrongPort(scene: Scene): Exit | undefined {
  const port = scene.given.text('port')
  if (port === undefined || /^\d+$/.test(port)) return undefined
  return misused(scene, `port is ${JSON.stringify(port)}; it is a number.`)
}

function listenOf(given: Given): ListenOptions {
  const [port, host, trustProxy] = [given.text('port'), given.text('host'), given.all('trust-proxy')]
  return {
    ...(port !== undefined && { port: Number(port) }),
    ...(host !== undefined && { host }),
    ...(trustProxy.length > 0 && { trustProxy }),
  }
}

/**
 * The first one asks it to stop; with the same one again nobody wants to wait any longer. Another one is no second: under
 * `sluice dev` Ctrl-C comes from the terminal, and SIGTERM from the process that watches.
 */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  const seen = new Set<string>()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (seen.has(name)) process.exit(130)
      seen.add(name)
      stop.abort()
    })
  }
  return stop.signal
}
