// `production` returns what an app is built with outside of the kit: by `sluice start`, from the environment.
import { systemClock } from 'sluice'
import type { Surroundings } from './example.ts'

export interface ProductionOptions {
  /** The default of SLUICE_STORE. */
  readonly store: string
  /** The addresses of the external services by name. The variable of `mail` is MAIL_URL. */
  readonly urls?: Readonly<Record<string, string>>
}

export function production({ store, urls = {} }: ProductionOptions): Surroundings {
  const { env } = process
  return {
    env,
    store: env['SLUICE_STORE'] ?? store,
    clock: systemClock,
    options: {},
    url: (name) => env[`${name.toUpperCase().replaceAll('-', '_')}_URL`] ?? urls[name] ?? '',
    watch: (client) => client,
  }
}
