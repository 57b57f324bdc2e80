// `isDev` tells whether `sluice dev` started this process. The app then accepts admin calls from this machine without a key.
import type { LogOptions } from '../observe/log/log.ts'

/** `DEV` names the variable in which `sluice dev` hands its own process id to the app that it starts. */
export const DEV = 'SLUICE_DEV'

/** `isDev` returns whether this process was started by `sluice dev` itself. Set in any other way, the variable means nothing. */
export function isDev(env: Readonly<Record<string, string | undefined>> = process.env): boolean {
  return env[DEV] === String(process.ppid)
}

/** `withDevFormat` makes the log readable by people if `sluice dev` prints it on a terminal and the app chose no format. */
export function withDevFormat(
  log: LogOptions | false = {},
  isTerminal: boolean = isDev() && process.stdout.isTTY,
): LogOptions | false {
  if (log === false || !isTerminal || log.format !== undefined || log.destination !== undefined) return log
  return { ...log, format: 'pretty-lines' }
}
