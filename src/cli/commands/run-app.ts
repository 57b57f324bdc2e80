// `sluice start`, `sluice dev` and `sluice version`: run the configured app; print the release.
import { readFileSync } from 'node:fs'
import { isDev } from '../../app/dev-mode.ts'
import type { ListenOptions } from '../../http/server.ts'
import type { ParsedArguments, Options } from '../arguments.ts'
import { reportMisuse, type Command, type CommandContext } from '../command.ts'
import { findDevKey } from '../dev-key.ts'
import { findConfigPath, loadConfig } from '../config-file.ts'
import { runDev as runAnew } from '../dev.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { startApp as runOnce } from '../start.ts'

const LISTEN_OPTIONS: Options = {
  port: { type: 'string', placeholder: 'N', description: 'port; default PORT or 8787; 0 picks a free one' },
  host: {
    type: 'string',
    placeholder: 'HOST',
    description: 'host; default 127.0.0.1; 0.0.0.0 accepts connections from everywhere',
  },
  'trust-proxy': {
    type: 'string',
    placeholder: 'NET',
    multiple: true,
    description: 'trust forwarded headers of this proxy, e.g. 10.0.0.0/8; repeatable',
  },
}

const ALLOW_LOOPBACK = 'allow-loopback'
/** The options of every command that delivers. */
export const DELIVERY_OPTIONS: Options = {
  [ALLOW_LOOPBACK]: {
    type: 'boolean',
    description: 'deliver to this machine, if delivery.allowLoopback also allows it',
  },
}

export function parseOverrides(args: ParsedArguments): { readonly allowLoopback: boolean } {
  return { allowLoopback: args.has(ALLOW_LOOPBACK) }
}

export const start: Command = {
  name: 'start',
  description: 'run the app; options override the exported listen: { port, host, tls, trustProxy }',
  options: { ...LISTEN_OPTIONS, ...DELIVERY_OPTIONS },
  isLongRunning: true,
  run: async (context) => {
    const { args, target, output } = context
    const wrong = checkPort(context)
    if (wrong !== undefined) return wrong
    // Loaded before the signal handlers are set, so that SIGTERM ends the process at once while the file loads.
    const app = await loadConfig(findConfigPath(target.folder, target.config))
    const how = {
      listen: parseListenOptions(args),
      ...parseOverrides(args),
      isDev: isDev(target.env),
      devKeyFile: findDevKey(target.folder),
    }
    await runOnce({ configured: app, ...how, print: (line) => output.print(line), signal: createStopSignal() })
    return EXIT.done
  },
}

export const dev: Command = {
  name: 'dev',
  description: 'run the app, and restart it when a file changes',
  options: LISTEN_OPTIONS,
  isLongRunning: true,
  run: async (context) => {
    const { args, target, output } = context
    const wrong = checkPort(context)
    if (wrong !== undefined) return wrong
    const proxies = args.all('trust-proxy').map((net) => `--trust-proxy=${net}`)
    const texts = Object.entries({
      ...args.texts(['port', 'host']),
      config: findConfigPath(target.folder, target.config),
    })
    await runAnew({
      args: [...texts.map(([name, value]) => `--${name}=${value}`), ...proxies, `--${ALLOW_LOOPBACK}`],
      main: process.argv[1] ?? '',
      folder: target.folder,
      env: target.env,
      print: (line) => output.print(line),
      signal: createStopSignal(),
    })
    return EXIT.done
  },
}

export const version: Command = {
  name: 'version',
  description: 'print the version',
  run: ({ output }) => {
    const url = new URL('../../../package.json', import.meta.url)
    const { version: number } = JSON.parse(readFileSync(url, 'utf8')) as { readonly version: string }
    if (output.asJson) output.printJson({ version: number })
    else output.print(number)
    return Promise.resolve(EXIT.done)
  },
}

/** `--port=$PORT` with an unset PORT must be rejected. An empty value must not mean "any free port". */
function checkPort(context: CommandContext): ExitCode | undefined {
  const port = context.args.text('port')
  if (port === undefined || /^\d+$/.test(port)) return undefined
  return reportMisuse(context, `--port must be a number; got ${JSON.stringify(port)}.`)
}

function parseListenOptions(args: ParsedArguments): ListenOptions {
  const [port, host, trustProxy] = [args.text('port'), args.text('host'), args.all('trust-proxy')]
  return {
    ...(port !== undefined && { port: Number(port) }),
    ...(host !== undefined && { host }),
    ...(trustProxy.length > 0 && { trustProxy }),
  }
}

/**
 * The first signal asks the app to stop; the same signal again ends it at once. A different signal does not count as
 * the second: under `sluice dev`, Ctrl-C comes from the terminal and SIGTERM from the watching process.
 */
function createStopSignal(): AbortSignal {
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
