// All commands, in the order of the help text.
import type { Command } from '../command.ts'
import { alerts, audit, keys, purge } from './access.ts'
import { completion } from './completion.ts'
import { dead } from './dead.ts'
import { backup, doctor, migrate } from './doctor.ts'
import { endpoints } from './endpoints.ts'
import { events, runs } from './events.ts'
import { flows, limits } from './flows.ts'
import { encryptionCommands } from './encryption.ts'
import { init } from './init.ts'
import { explain, lanes } from './lanes.ts'
import { publish } from './publish.ts'
import { replay } from './replay.ts'
import { dev, start, version } from './run-app.ts'
import { send } from './send.ts'
import { sources } from './sources.ts'
import { stats } from './stats.ts'
import { tail } from './tail.ts'
import { work } from './work.ts'

const ALL: readonly Command[] = [
  init,
  dev,
  start,
  work,
  migrate,
  backup,
  doctor,
  send,
  publish,
  tail,
  explain,
  ...lanes,
  ...flows,
  ...limits,
  ...dead,
  ...events,
  ...runs,
  ...sources,
  ...replay,
  ...endpoints,
  stats,
  alerts,
  ...keys,
  ...encryptionCommands,
  ...audit,
  purge,
  version,
]

export const COMMANDS: readonly Command[] = [...ALL, completion(ALL)]
