// `isDev` tells whether `sluice dev` started this process. The app then accepts admin calls from this machine without a key.

/** `DEV` names the variable in which `sluice dev` hands its own process id to the app that it starts. */
export const DEV = 'SLUICE_DEV'

/** `isDev` returns whether this process was started by `sluice dev` itself. Set in any other way, the variable means nothing. */
export function isDev(env: Readonly<Record<string, string | undefined>> = process.env): boolean {
  return env[DEV] === String(process.ppid)
}
