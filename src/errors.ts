// Every code this package can throw. Codes are API: add freely, never rename. docs/errors.md lists them with their fixes.

const CATALOGUE = {
  CONFIG_INVALID: { status: 500, fix: 'Correct the option the message names.' },
  CONFIG_MISSING: { status: 500, fix: 'Write one that exports the app as its default, or name it with --config.' },
  EVENT_INVALID: { status: 400, fix: 'Correct the field the message names, and send it again.' },
  ENDPOINT_INVALID: { status: 400, fix: 'Correct the field the message names, and register it again.' },
  APP_STOPPED: { status: 503, fix: 'Begin it before stop, or in another process.' },
  RUN_LOST: { status: 409, fix: 'End the handler: another process may be doing the same work.' },
  LIMIT_TOO_SLOW: {
    status: 503,
    fix: "Make the store answer faster, relieve the event loop, or lengthen the limit's per: a slot stays fresh for a tenth of it, up to 100 ms.",
  },
  SEAL_UNKNOWN: {
    status: 500,
    fix: 'Give the key it was sealed under behind the newest: SLUICE_MASTER_KEY=<new>,<old>, or the second one of key.',
  },
  LISTEN_FAILED: { status: 500, fix: 'Choose another port or host, or stop who has it.' },
  STORE_UNKNOWN: { status: 500, fix: 'Use memory:, sqlite:<file> or postgres://….' },
  STORE_IN_USE: { status: 503, fix: 'Stop the other process that works on this file, or open it with readOnly: true.' },
  STORE_NOT_A_DATABASE: { status: 500, fix: 'Point to another file, or move this one away.' },
  STORE_SCHEMA_NEWER: { status: 500, fix: 'Run a release of sluice at least as new as the one that wrote the file.' },
  STORE_MISSING: { status: 500, fix: 'Check the path; the process that works on the file creates it.' },
  STORE_UNWRITABLE: { status: 500, fix: 'Give the process the right to write the file and its folder, or the schema.' },
  STORE_FULL: { status: 507, fix: 'Free disk space, or raise maxBytes; what was acknowledged is kept.' },
  STORE_DAMAGED: { status: 500, fix: 'Restore the file from a backup.' },
  STORE_CLOSED: { status: 503, fix: 'Open the store again; nothing was written.' },
  STORE_FAILED: { status: 503, fix: 'See the cause; nothing of this call was written.' },
  STORE_UNSYNCED: {
    status: 503,
    fix: 'Look at the disk, then restart the process: whether what was written last is on it, nobody can say.',
  },
  STORE_REPLACED: {
    status: 503,
    fix: 'Stop the process and put the file back with its -wal, or a backup in its place: it has what was acknowledged before that.',
  },
  STORE_UNREACHABLE: {
    status: 503,
    fix: 'Look whether the server runs and takes writes, and the address is right; a call that was cut off may be repeated.',
  },
  STORE_DRIVER_MISSING: { status: 500, fix: 'Install it beside sluice: npm install pg.' },
  STORE_FORGETFUL: {
    status: 500,
    fix: 'Turn the setting on, or open the store with acceptLoss: true if losing what was acknowledged is fine.',
  },
  STORE_POOLED: {
    status: 500,
    fix: 'Connect to the server itself, or to a pooler in session mode: what is kept in a session has to stay.',
  },
  STORE_READ_ONLY: { status: 500, fix: 'Open the store without readOnly to write.' },
  NOT_FOUND: { status: 404, fix: 'Look for it in the list; it may have been removed, by its age or by hand.' },
  REQUEST_INVALID: { status: 400, fix: 'Correct the field the message names.' },
  KEY_MISSING: { status: 401, fix: 'Send Authorization: Bearer <key>; `sluice keys make` gives one.' },
  KEY_WRONG: { status: 401, fix: 'Use a key that `sluice keys` lists; one that was revoked does not come back.' },
  ROLE_TOO_LOW: { status: 403, fix: 'Use a key of the role operate.' },
  NOT_YOURS: {
    status: 403,
    fix: 'Use a key of the API: the token of a subscriber is for the deliveries, test, replay and rotate-secret of its own endpoint.',
  },
  OPERATOR_NEEDED: {
    status: 409,
    fix: 'Make a key of the role operate first; the last one of these can only be revoked after all others.',
  },
  CROSS_SITE: { status: 403, fix: 'Call the API from its own origin, or from no browser at all.' },
  NOT_POSSIBLE: { status: 409, fix: 'Put right what the message names, or wait for it, and ask again.' },
  METHOD_WRONG: { status: 405, fix: 'See /openapi.json for what the address takes.' },
  BODY_NOT_JSON: { status: 415, fix: 'Send JSON, with content-type: application/json.' },
  BODY_TOO_LONG: { status: 413, fix: 'Send at most 1 MB.' },
  TOO_MANY_CALLS: { status: 429, fix: 'Come again when retry-after says.' },
  API_FAILED: { status: 500, fix: 'See the log of the process.' },
  REQUEST_STALE: { status: 409, fix: 'Number the turns of a process upwards and repeat only the last one.' },
} as const

export type ErrorCode = keyof typeof CATALOGUE

export const ERRORS: Readonly<Record<ErrorCode, { readonly status: number; readonly fix: string }>> = CATALOGUE

export class SluiceError extends Error {
  override readonly name = 'SluiceError'
  readonly code: ErrorCode
  readonly status: number
  readonly fix: string

  constructor(code: ErrorCode, what: string, cause?: unknown) {
    super(`${code}: ${what} ${ERRORS[code].fix}`, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = ERRORS[code].status
    this.fix = ERRORS[code].fix
  }
}
